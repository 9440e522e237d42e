// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Misfit is a value of the wrong type; it never holds the value.
type Misfit struct{ path, want, got string }

// String says where the value is, what it is and what it has to be.
func (m Misfit) String() string { return m.path + " is " + m.got + ", not " + m.want }

// fitter fits one object; the path is kept as a stack, so that it costs nothing until it is wanted.
type fitter struct {
	path    []step
	misfits []Misfit
}

type step struct {
	key   string
	index int
}

// Fit brings value into its shape, in place: what the shape does not know is dropped, as are zero values that the type
// omits, and fields that it always writes are added.
func Fit(s *Shape, value map[string]any) []Misfit {
	f := &fitter{}
	f.record(s, value)
	slices.SortFunc(f.misfits, func(a, b Misfit) int { return strings.Compare(a.path, b.path) })
	return f.misfits
}

func (f *fitter) value(s *Shape, value any) any {
	switch s.form {
	case anything:
		return value
	case record:
		if entries, ok := value.(map[string]any); ok {
			f.record(s, entries)
			return entries
		}
	case dictionary:
		if entries, ok := value.(map[string]any); ok {
			f.dictionary(s, entries)
			return entries
		}
	case list:
		if items, ok := value.([]any); ok {
			f.list(s, items)
			return items
		}
	case choice:
		if option := s.choose(value); option != nil {
			return f.value(option, value)
		}
	default:
		if s.accepts(value) {
			return value
		}
	}
	f.misfits = append(f.misfits, Misfit{path: f.where(), want: s.describe(), got: describeJSON(value)})
	return value
}

func (f *fitter) record(s *Shape, entries map[string]any) {
	for key, value := range entries {
		known, ok := s.fields[key]
		if !ok || value == nil {
			delete(entries, key)
			continue
		}
		f.path = append(f.path, step{key: key})
		value = f.value(known.Shape, value)
		f.path = f.path[:len(f.path)-1]
		if known.omitEmpty && !known.pointer && isZero(value) && known.form != record {
			delete(entries, key)
		}
	}
	for _, key := range s.missing {
		if _, there := entries[key]; !there {
			if zero := s.fields[key].zero(); zero != nil {
				entries[key] = zero
			}
		}
	}
}

func (f *fitter) dictionary(s *Shape, entries map[string]any) {
	for key, value := range entries {
		if value == nil {
			entries[key] = s.element.zero()
			continue
		}
		f.path = append(f.path, step{key: key})
		f.value(s.element, value)
		f.path = f.path[:len(f.path)-1]
	}
}

func (f *fitter) list(s *Shape, items []any) {
	for i, item := range items {
		if item == nil {
			items[i] = s.element.zero()
			continue
		}
		f.path = append(f.path, step{index: i})
		f.value(s.element, item)
		f.path = f.path[:len(f.path)-1]
	}
}

// zero is what the type writes for a value that is not there; nil where that would be null.
func (s *Shape) zero() any {
	switch s.form {
	case text:
		return ""
	case truth:
		return false
	case whole:
		return int64(0)
	case record:
		entries := map[string]any{}
		new(fitter).record(s, entries)
		return entries
	default:
		return nil
	}
}

func (s *Shape) choose(value any) *Shape {
	for _, option := range s.choices {
		switch value.(type) {
		case map[string]any:
			if option.form == record {
				return option
			}
		case []any:
			if option.form == list {
				return option
			}
		case bool:
			if option.form == truth {
				return option
			}
		}
	}
	return nil
}

func (s *Shape) accepts(value any) bool {
	switch v := value.(type) {
	case string:
		return s.form == text || s.reads(value)
	case bool:
		return s.form == truth || s.reads(value)
	case int64:
		return s.form == whole || s.form == number || s.reads(value)
	case float64:
		return s.form == number || s.form == whole && v == math.Trunc(v) || s.reads(value)
	}
	return s.reads(value)
}

// reads asks a type that reads itself.
func (s *Shape) reads(value any) bool {
	if s.form != opaque {
		return false
	}
	encoded, err := json.Marshal(value)
	return err == nil && json.Unmarshal(encoded, reflect.New(s.typ).Interface()) == nil
}

func isZero(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return value == nil
}

func (f *fitter) where() string {
	var b strings.Builder
	for _, s := range f.path {
		switch {
		case s.key == "":
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case b.Len() == 0:
			b.WriteString(s.key)
		default:
			b.WriteString("." + s.key)
		}
	}
	return b.String()
}

func (s *Shape) describe() string {
	switch s.form {
	case text:
		return "a string"
	case truth:
		return "true or false"
	case whole:
		return "a whole number"
	case number:
		return "a number"
	case list:
		return "a list"
	case opaque:
		return "a valid " + s.typ.Name()
	case absent:
		return "left out: nothing is fetched or looked up to complete a schema"
	default:
		return "a mapping"
	}
}

func describeJSON(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "true or false"
	case float64:
		if v != math.Trunc(v) {
			return "a fraction"
		}
	}
	return "a number"
}
