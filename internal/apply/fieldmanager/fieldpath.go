// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hasPath tells whether an object contains the field that a conflict names, as in
// .spec.containers[name="web"].image. Names are written there without escapes, so
// that .labels.app.kubernetes.io/name is ambiguous: every reading is tried.
func hasPath(object *unstructured.Unstructured, path string) bool {
	return object != nil && path != "" && present(object.Object, path)
}

func present(value any, path string) bool {
	switch {
	case path == "":
		return true
	case strings.HasPrefix(path, "."):
		fields, _ := value.(map[string]any)
		for name, child := range fields {
			rest, found := strings.CutPrefix(path[1:], name)
			if found && (rest == "" || rest[0] == '.' || rest[0] == '[') && present(child, rest) {
				return true
			}
		}
	case strings.HasPrefix(path, "["):
		selector, rest, ok := cutSelector(path)
		items, _ := value.([]any)
		for i, item := range items {
			if ok && selected(item, i, selector) && present(item, rest) {
				return true
			}
		}
	}
	return false
}

// cutSelector splits `[name="a]b"].image` into `name="a]b"` and `.image`.
func cutSelector(path string) (selector, rest string, ok bool) {
	for i := 1; i < len(path); i++ {
		switch path[i] {
		case ']':
			return path[1:i], path[i+1:], true
		case '"':
			literal, err := strconv.QuotedPrefix(path[i:])
			if err != nil {
				return "", "", false
			}
			i += len(literal) - 1
		}
	}
	return "", "", false
}

// selected tells whether a list item is the one that a selector names: by its
// index, by its value (=value), or by its keys (name="web",port=80).
func selected(item any, index int, selector string) bool {
	if wanted, err := strconv.Atoi(selector); err == nil {
		return index == wanted
	}
	if value, found := strings.CutPrefix(selector, "="); found {
		return equalJSON(item, value)
	}
	fields, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for selector != "" {
		key, rest, found := strings.Cut(selector, "=")
		if !found {
			return false
		}
		value := rest
		if at := endOfValue(rest); at < len(rest) {
			value, selector = rest[:at], rest[at+1:]
		} else {
			selector = ""
		}
		actual, exists := fields[key]
		if exists && !equalJSON(actual, value) {
			return false // a key that is left out has its default value
		}
	}
	return true
}

// endOfValue finds the comma behind a value that may be a quoted string.
func endOfValue(text string) int {
	start := 0
	if literal, err := strconv.QuotedPrefix(text); err == nil {
		start = len(literal)
	}
	if at := strings.IndexByte(text[start:], ','); at >= 0 {
		return start + at
	}
	return len(text)
}

func equalJSON(value any, text string) bool {
	var wanted any
	if json.Unmarshal([]byte(text), &wanted) != nil {
		return false
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return false
	}
	var actual any
	return json.Unmarshal(encoded, &actual) == nil && reflect.DeepEqual(actual, wanted)
}

// WithoutPaths copies an object and leaves out plain paths (.spec.replicas).
func WithoutPaths(object *unstructured.Unstructured, paths []string) *unstructured.Unstructured {
	reduced := object.DeepCopy()
	for _, path := range paths {
		unstructured.RemoveNestedField(reduced.Object, strings.Split(strings.TrimPrefix(path, "."), ".")...)
	}
	return reduced
}
