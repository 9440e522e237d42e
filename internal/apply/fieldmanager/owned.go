// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
)

// ownedFields are the fields of a managedFields entry: a mapping for each level, with
// f:name for fields, k:{...} and v:value for items of lists that are merged. A field
// without anything below it is owned as a whole.
type ownedFields map[string]any

func decodeOwned(entry *metav1.ManagedFieldsEntry) ownedFields {
	fields := ownedFields{}
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), (*map[string]any)(&fields)) != nil {
		return ownedFields{} // the API server writes no others
	}
	return fields
}

// part finds which part of a value is owned: a field of a mapping, or an
// item of a list, which is identified by its keys or its value.
func (f ownedFields) part(value any, part string) (key string, found bool) {
	switch value := value.(type) {
	case map[string]any:
		key = "f:" + part
		_, found = f[key]
		return key, found
	case []any:
		i, err := strconv.Atoi(part)
		if err != nil || i < 0 || i >= len(value) {
			return "", false
		}
		return f.item(value[i])
	}
	return "", false
}

func (f ownedFields) item(item any) (key string, found bool) {
	for _, key := range slices.Sorted(maps.Keys(f)) {
		text, keyed := strings.CutPrefix(key, "k:")
		if plain, ok := strings.CutPrefix(key, "v:"); ok {
			text = plain
		} else if !keyed {
			continue
		}
		var wanted any
		if json.Unmarshal([]byte(text), &wanted) == nil && (keyed && hasKeys(item, wanted) || !keyed && reflect.DeepEqual(plainNumber(item), wanted)) {
			return key, true
		}
	}
	return "", false
}

// hasKeys tells whether an item is the one with these keys; keys that it does not
// have are defaults.
func hasKeys(item, keys any) bool {
	fields, _ := item.(map[string]any)
	wanted, _ := keys.(map[string]any)
	same := 0
	for name, value := range wanted {
		have, found := fields[name]
		if found && !reflect.DeepEqual(plainNumber(have), value) {
			return false
		}
		if found {
			same++
		}
	}
	return same > 0
}

// plainNumber makes numbers of all kinds comparable with decoded JSON.
func plainNumber(value any) any {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case int:
		return float64(value)
	}
	return value
}

func (f ownedFields) below(key string) ownedFields {
	child, _ := f[key].(map[string]any)
	return child
}

// remove removes what a pointer into the value leads to, and tells whether that was owned.
func (f ownedFields) remove(value any, pointer ignore.Pointer) bool {
	key, found := f.part(value, pointer[0])
	if !found {
		return false
	}
	if len(pointer) == 1 {
		delete(f, key)
		return true
	}
	child := f.below(key)
	if len(child) == 0 || !child.remove(inside(value, pointer[0]), pointer[1:]) {
		return false // owned as a whole, or not at all
	}
	if len(child) == 0 {
		delete(f, key)
	}
	return true
}

// inside is one part of a value.
func inside(value any, part string) any {
	switch value := value.(type) {
	case map[string]any:
		return value[part]
	case []any:
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(value) {
			return value[i]
		}
	}
	return nil
}

// lost lists the paths of a value that are not owned, written as in .spec.containers[name="web"].image.
func (f ownedFields) lost(value any, path string) []string {
	var paths []string
	visit := func(part, at string, child any) {
		if isEmpty(child) {
			return
		}
		key, found := f.part(value, part)
		if !found {
			paths = append(paths, leaves(child, at)...)
		} else if below := f.below(key); len(below) > 0 {
			paths = append(paths, below.lost(child, at)...)
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			visit(name, path+"."+name, value[name])
		}
	case []any:
		for i, item := range value {
			visit(strconv.Itoa(i), path+itemText(i, item), item)
		}
	}
	return paths
}

// leaves are the fields of a value that are no mappings.
func leaves(value any, path string) []string {
	fields, ok := value.(map[string]any)
	if !ok {
		return []string{path}
	}
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		paths = append(paths, leaves(fields[name], path+"."+name)...)
	}
	return paths
}

// itemText writes a list item as users know it.
func itemText(i int, item any) string {
	fields, _ := item.(map[string]any)
	if name, ok := fields["name"].(string); ok {
		return fmt.Sprintf("[name=%q]", name)
	}
	return fmt.Sprintf("[%d]", i)
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// has tells whether a path as lost writes it, or something below it, is owned.
func (f ownedFields) has(value any, path string) bool {
	owned := map[string]bool{}
	f.each(value, "", owned)
	for at := range owned {
		if at == path || strings.HasPrefix(at, path+".") || strings.HasPrefix(at, path+"[") {
			return true
		}
	}
	return false
}

// each collects the paths of what is owned of a value.
func (f ownedFields) each(value any, path string, into map[string]bool) {
	visit := func(part, at string, child any) {
		key, found := f.part(value, part)
		if !found {
			return
		}
		if below := f.below(key); len(below) > 0 {
			below.each(child, at, into)
			return
		}
		into[at] = true
	}
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			visit(name, path+"."+name, child)
		}
	case []any:
		for i, item := range value {
			visit(strconv.Itoa(i), path+itemText(i, item), item)
		}
	}
}
