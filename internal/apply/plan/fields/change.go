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

	keys []string // the path as a JSON pointer's
}

// Hidden stands for each value that is not shown.
const Hidden = "(hidden)"

// Pointer is the JSON pointer (RFC 6901) to the field, as spec.driftDetection.ignore
// takes it. It addresses items of lists by their place in the state after; false where
// there is none, for the field is in an item that goes.
func (c Change) Pointer() (string, bool) {
	if c.keys == nil {
		return "", false
	}
	var text strings.Builder
	for _, key := range c.keys {
		text.WriteByte('/')
		text.WriteString(escaper.Replace(key))
	}
	return text.String(), true
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
	c.value(place{keys: []string{}}, visible(before), visible(after))
	return c.changes, c.more
}

// Values compares any two values that stand for the same field, such as two Pod
// templates. Nothing in them is hidden but what Secrets contain.
func Values(before, after any) ([]Change, int) {
	c := comparison{}
	c.value(place{keys: []string{}}, hide(before), hide(after))
	return c.changes, c.more
}

// place is where a value stands.
type place struct {
	path string
	keys []string // nil: it has no place after
}

func (p place) field(name string) place {
	path := p.path + "." + name
	if !plain(name) {
		path = p.path + "[" + strconv.Quote(name) + "]"
	}
	return place{path, p.at(name)}
}

func (p place) item(selector string, index int) place {
	keys := p.at(strconv.Itoa(index))
	if index < 0 {
		keys = nil
	}
	return place{p.path + "[" + selector + "]", keys}
}

func (p place) at(key string) []string {
	if p.keys == nil {
		return nil
	}
	return append(p.keys[:len(p.keys):len(p.keys)], key)
}

// plain tells of a key that it reads as a word.
func plain(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}
