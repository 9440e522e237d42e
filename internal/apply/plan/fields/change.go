// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Change is one field that differs.
type Change struct {
	// Path of the field, as .spec.containers[name="web"].image. Keys that are not plain
	// words are quoted: .data["tls.crt"].
	Path string `json:"path"`
	// Before and After are the values; nil where the field is absent. Secret values
	// in them are Hidden.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`

	steps []step // the path in its parts
}

// Hidden stands for each hidden value.
const Hidden = "(hidden)"

// Pointer is the JSON pointer (RFC 6901) of the field in an object, such as
// the desired one, which may have other items in its lists; in the form of
// spec.drift.ignore. It is false where the object has no such field.
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

// Most is the maximum number of changes for one object.
const Most = 1000

// Diff returns the changes from before to after in the order of their paths, and the number
// of changes beyond Most. With a nil object all fields are absent.
func Diff(before, after *unstructured.Unstructured) ([]Change, int) {
	return compare(before, after, false)
}

// Wanted is Diff of only the fields that after has: further fields of before
// may have been set by others, such as the API server's defaults.
func Wanted(before, after *unstructured.Unstructured) ([]Change, int) {
	return compare(before, after, true)
}

func compare(before, after *unstructured.Unstructured, wanted bool) ([]Change, int) {
	c := comparison{wanted: wanted}
	c.value(place{}, visible(before), visible(after))
	return c.changes, c.more
}

// Values compares any two values of the same field, such as two Pod
// templates. Only the contents of Secrets in them are hidden.
func Values(before, after any) ([]Change, int) {
	c := comparison{}
	c.value(place{}, hide(before), hide(after))
	return c.changes, c.more
}

// place is the position of a value.
type place struct {
	path  string
	steps []step
}

// step leads from a value to one in it: a field, or an item of a list by its index or,
// with parts, by its key.
type step struct {
	name  string
	item  bool
	parts []keyPart
}

func (p place) field(name string) place {
	shown := "." + clipped(name)
	if !plain(name) {
		shown = "[" + strconv.Quote(clipped(name)) + "]"
	}
	return place{p.extended(shown), p.then(step{name: name})}
}

func (p place) item(name string, parts []keyPart) place {
	return place{p.extended("[" + clipped(name) + "]"), p.then(step{name: name, item: true, parts: parts})}
}

// Limits of paths: every value below a long key has it in its path.
const (
	longestPath = 4096
	longestName = 512
)

// extended is the path with one more part, unless it is too long already.
func (p place) extended(part string) string {
	if len(p.path) > longestPath {
		return p.path
	}
	return p.path + part
}

func clipped(name string) string {
	if len(name) <= longestName {
		return name
	}
	return strings.ToValidUTF8(name[:longestName], "") + "..."
}

func (p place) then(next step) []step { return append(p.steps[:len(p.steps):len(p.steps)], next) }

// in returns the value that the step leads to, and its key or index.
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

// plain tells that a key need not be quoted.
func plain(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}
