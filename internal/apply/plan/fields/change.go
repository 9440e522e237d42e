// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Change is one field that differs.
type Change struct {
	// Path of the field, as .spec.containers[name="web"].image. Keys that are no plain
	// words are quoted: .data["tls.crt"].
	Path string `json:"path"`
	// Before and After are the values; nil where the field is absent. What is not to be
	// shown in them is Hidden.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`

	steps []step // the path in its parts
}

// Hidden stands for each value that is not shown.
const Hidden = "(hidden)"

// Pointer is the JSON pointer (RFC 6901) by which the field is found in an object, such as
// the one that is desired, which may have other items in its lists; as
// spec.driftDetection.ignore takes it. It is false where the object has no such field.
func (c Change) Pointer(in map[string]any) (string, bool) {
	var text strings.Builder
	var value any = in
	for _, step := range c.steps {
		key, child, found := step.in(value)
		if !found {
			return "", false
		}
		value = child
		text.WriteByte('/')
		text.WriteString(escaper.Replace(key))
	}
	return text.String(), text.Len() > 0
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// Most is how many changes of one object are given.
const Most = 1000

// Diff gives the changes from before to after in the order of their paths, and how many
// there are beyond Most. A nil object is none: all fields are absent.
func Diff(before, after *unstructured.Unstructured) ([]Change, int) {
	return compare(before, after, false)
}

// Wanted is Diff of nothing but the fields that after has: what before has beside them
// may have been filled in by others, such as the API server's defaults.
func Wanted(before, after *unstructured.Unstructured) ([]Change, int) {
	return compare(before, after, true)
}

func compare(before, after *unstructured.Unstructured, wanted bool) ([]Change, int) {
	c := comparison{wanted: wanted}
	c.value(place{}, visible(before), visible(after))
	return c.changes, c.more
}

// Values compares any two values that stand for the same field, such as two Pod
// templates. Nothing in them is hidden but what Secrets contain.
func Values(before, after any) ([]Change, int) {
	c := comparison{}
	c.value(place{}, hide(before), hide(after))
	return c.changes, c.more
}

// place is where a value stands.
type place struct {
	path  string
	steps []step
}

// step leads from a value to one in it: a field, or an item of a list by its place or,
// with parts, by its key.
type step struct {
	name  string
	item  bool
	parts []keyPart
}

func (p place) field(name string) place {
	path := p.path + "." + name
	if !plain(name) {
		path = p.path + "[" + strconv.Quote(name) + "]"
	}
	return place{path, p.then(step{name: name})}
}

func (p place) item(name string, parts []keyPart) place {
	return place{p.path + "[" + name + "]", p.then(step{name: name, item: true, parts: parts})}
}

func (p place) then(next step) []step { return append(p.steps[:len(p.steps):len(p.steps)], next) }

// in finds where the step leads in a value, and the key or index by which it does.
func (s step) in(value any) (key string, child any, found bool) {
	switch value := value.(type) {
	case map[string]any:
		child, found = value[s.name]
		return s.name, child, found && !s.item
	case []any:
		for i, item := range value {
			fields, _ := item.(map[string]any)
			text := strconv.Itoa(i)
			if s.parts != nil {
				text, _ = keyOf(fields, s.parts)
			}
			if text == s.name {
				return strconv.Itoa(i), item, s.item
			}
		}
	}
	return "", nil, false
}

// plain tells of a key that it reads as a word.
func plain(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}
