// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// fields is a mapping of an object that is being translated: translated fields are removed, and the fields that are left in
// the end are unknown ones.
type fields struct {
	of   *reading
	path string
	left map[string]any
}

// fieldsOf takes a field of an object that holds fields.
func fieldsOf(r *reading, object map[string]any, key string) fields {
	return fields{of: r, left: map[string]any{key: object[key]}}.sub(key)
}

func (f fields) at(key string) string {
	return strings.TrimPrefix(f.path+"."+key, ".")
}

// take removes a field; an explicit null counts as missing.
func (f fields) take(key string) (any, bool) {
	value, found := f.left[key]
	delete(f.left, key)
	return value, found && value != nil
}

func (f fields) wrong(key, wanted string) {
	f.of.refuse(ruleValue, f.at(key)+" is not "+wanted, "correct it")
}

// text takes a string; empty when it is missing.
func (f fields) text(key string) string {
	value, found := f.take(key)
	if !found {
		return ""
	}
	text, ok := value.(string)
	if !ok {
		f.wrong(key, "a string")
	}
	return text
}

// flag takes a boolean.
func (f fields) flag(key string) bool {
	value, found := f.take(key)
	if !found {
		return false
	}
	flag, ok := value.(bool)
	if !ok {
		f.wrong(key, "true or false")
	}
	return flag
}

// number takes a whole number; false when it is missing.
func (f fields) number(key string) (int64, bool) {
	value, found := f.take(key)
	if !found {
		return 0, false
	}
	switch number := value.(type) {
	case int64:
		return number, true
	case float64:
		if number == math.Trunc(number) && math.Abs(number) < 1<<53 {
			return int64(number), true
		}
	}
	f.wrong(key, "a whole number")
	return 0, false
}

// texts takes a list of strings.
func (f fields) texts(key string) []string {
	value, found := f.take(key)
	if !found {
		return nil
	}
	list, ok := value.([]any)
	texts := make([]string, 0, len(list))
	for _, item := range list {
		text, is := item.(string)
		ok = ok && is
		texts = append(texts, text)
	}
	if !ok {
		f.wrong(key, "a list of strings")
		return nil
	}
	return texts
}

// has tells whether a field is there.
func (f fields) has(key string) bool { return f.left[key] != nil }

// sub takes fields below a field; what is left of them counts as left here.
func (f fields) sub(key string) fields {
	below := fields{of: f.of, path: f.at(key), left: map[string]any{}}
	value, found := f.left[key]
	if !found || value == nil {
		delete(f.left, key)
		return below
	}
	object, ok := value.(map[string]any)
	if !ok {
		delete(f.left, key)
		f.wrong(key, "a mapping")
		return below
	}
	below.left = object
	return below
}

// list takes a list of mappings.
func (f fields) list(key string) []fields {
	value, found := f.take(key)
	if !found {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		f.wrong(key, "a list")
		return nil
	}
	below := make([]fields, 0, len(list))
	for i, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			f.wrong(key+"["+strconv.Itoa(i)+"]", "a mapping")
			continue
		}
		below = append(below, fields{of: f.of, path: f.at(key) + "[" + strconv.Itoa(i) + "]", left: object})
	}
	return below
}

// decode takes a field into a Go type, which has to have each of its fields.
func (f fields) decode(key string, into any) bool {
	value, found := f.take(key)
	if !found {
		return false
	}
	encoded, err := json.Marshal(value)
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(encoded))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(into)
	}
	if err != nil {
		f.of.refuse(ruleValue, f.at(key)+" is not what it should be: "+strings.TrimPrefix(err.Error(), "json: "), "correct it")
	}
	return err == nil
}

// rest notes the fields that are left, which are unknown. Empty mappings are ignored.
func (f fields) rest() {
	for _, path := range leaves(f.path, f.left) {
		f.of.note("%s is unknown, and has no effect", path)
	}
}

// mostLeaves bounds the unknown fields that are listed of one object.
const mostLeaves = 50

// leaves are the paths of what a mapping holds: down to lists and scalars, sorted.
func leaves(path string, value any) []string {
	var found []string
	var walk func(path string, value any)
	walk = func(path string, value any) {
		object, ok := value.(map[string]any)
		if !ok {
			if value != nil && len(found) <= mostLeaves {
				found = append(found, path)
			}
			return
		}
		keys := make([]string, 0, len(object))
		for key := range object {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			walk(strings.TrimPrefix(path+"."+shown(key), "."), object[key])
		}
	}
	walk(path, value)
	if len(found) > mostLeaves {
		found = append(found[:mostLeaves], fmt.Sprintf("more than %d further fields", mostLeaves))
	}
	return found
}

// shown bounds a key.
func shown(key string) string {
	if runes := []rune(key); len(runes) > 63 {
		return string(runes[:63]) + "…"
	}
	return key
}

// quoted shows a string of the manifests in a message.
func quoted(text string) string { return strconv.QuoteToGraphic(shown(text)) }

func contains(list []string, item string) bool { return slices.Contains(list, item) }
