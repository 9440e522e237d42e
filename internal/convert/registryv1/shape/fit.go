// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Path leads to a value, from the outermost mapping inwards.
type Path []Step

// Step is one part of a path: the key of a field, or, where that is empty, the index of an item.
type Step struct {
	Key   string
	Index int
}

// String writes a path as in spec.containers[0].image.
func (p Path) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case s.Key == "":
			b.WriteString("[" + strconv.Itoa(s.Index) + "]")
		case b.Len() == 0:
			b.WriteString(s.Key)
		default:
			b.WriteString("." + s.Key)
		}
	}
	return b.String()
}

// Misfit is a value that does not fit; it never holds the value.
type Misfit struct {
	Path Path
	// Fields are the known fields, where the misfit is an unknown one.
	Fields []string

	fault string
}

// String says where the value is, what it is and what it has to be.
func (m Misfit) String() string {
	return cmp.Or(m.Path.String(), "it") + " " + m.fault
}

// fitter fits one object; the path is kept as a stack, so that it costs nothing until it is wanted.
type fitter struct {
	strict  bool
	path    Path
	misfits []Misfit
}

// Fit brings value into its shape, in place: what the shape does not know is dropped, as are zero values that the type
// omits, and fields that it always writes are added.
func Fit(s *Shape, value map[string]any) []Misfit {
	f := &fitter{}
	f.record(s, value)
	return f.sorted()
}

// mostMisfits are returned by Strict: as many as sigs.k8s.io/json lists.
const mostMisfits = 100

// Strict returns the misfits of a value that a user wrote: values of the wrong type, and unknown fields. The root is
// where the value stands. The value is of no use afterwards.
func Strict(s *Shape, value any, root Path) []Misfit {
	f := &fitter{strict: true, path: slices.Clone(root)}
	f.value(s, value)
	misfits := f.sorted()
	return misfits[:min(len(misfits), mostMisfits)]
}

func (f *fitter) sorted() []Misfit {
	slices.SortFunc(f.misfits, func(a, b Misfit) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	return f.misfits
}

func (f *fitter) report(fault string) *Misfit {
	f.misfits = append(f.misfits, Misfit{Path: slices.Clone(f.path), fault: fault})
	return &f.misfits[len(f.misfits)-1]
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
	f.report("is " + describeJSON(value) + ", not " + s.describe() + s.remedy(value))
	return value
}

func (f *fitter) record(s *Shape, entries map[string]any) {
	for key, value := range entries {
		known, ok := s.fields[key]
		if !ok && f.strict {
			f.unknown(s, key)
		}
		if !ok || value == nil {
			delete(entries, key)
			continue
		}
		f.path = append(f.path, Step{Key: key})
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

func (f *fitter) unknown(s *Shape, key string) {
	f.path = append(f.path, Step{Key: key})
	f.report("is not a known field").Fields = slices.Sorted(maps.Keys(s.fields))
	f.path = f.path[:len(f.path)-1]
}

func (f *fitter) dictionary(s *Shape, entries map[string]any) {
	for key, value := range entries {
		if value == nil {
			entries[key] = s.element.zero()
			continue
		}
		f.path = append(f.path, Step{Key: key})
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
		f.path = append(f.path, Step{Index: i})
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

// remedy is for what YAML reads as a number or a truth value because it has no quotation marks.
func (s *Shape) remedy(value any) string {
	if s.form != text {
		return ""
	}
	switch value.(type) {
	case bool, int64, float64:
		return "; put it into quotation marks"
	}
	return ""
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
