// SPDX-License-Identifier: Apache-2.0

// Package variables replaces variables such as ${name} in the strings of objects, as Flux does it, and makes numbers and
// booleans of them where Kubernetes wants such. It does not know where values come from, and quotes none.
package variables

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Values are the values of variables, by their names.
type Values struct {
	given, read map[string]string
	used        map[string]bool
	left        int64 // bytes that may still be written
	exceeded    bool
}

// New returns values; those in given win over those in read. The values that are written in place of variables may have so
// many bytes in all.
func New(given, read map[string]string, bytes int64) *Values {
	return &Values{given: given, read: read, used: map[string]bool{}, left: bytes}
}

// Exceeded tells whether values with more bytes were to be written. The object is not complete then.
func (v *Values) Exceeded() bool { return v.exceeded }

// reserve counts the bytes of a value before it is written.
func (v *Values) reserve(bytes int) error {
	if int64(bytes) > v.left {
		v.left, v.exceeded = 0, true
		return errTooLarge
	}
	v.left -= int64(bytes)
	return nil
}

// Used tells whether an object had the variable.
func (v *Values) Used(name string) bool { return v.used[name] }

func (v *Values) value(name string) (string, bool) {
	v.used[name] = true
	if value, ok := v.given[name]; ok {
		return value, true
	}
	value, ok := v.read[name]
	return value, ok
}

// Fault is why a variable of an object cannot be replaced; it contains no value.
type Fault struct{ Path, Message string }

// maxFaults bounds what is reported of one object.
const maxFaults = 10

// Replace replaces the variables in all strings of an object, in place.
func (v *Values) Replace(object *unstructured.Unstructured) []Fault {
	s := substitution{values: v}
	s.object(object)
	return s.faults
}

// substitution is that of one object.
type substitution struct {
	values *Values
	faults []Fault
}

func (s *substitution) object(object *unstructured.Unstructured) {
	gvk := object.GroupVersionKind()
	fields := object.Object
	shape := shapeOf(gvk)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if gvk.Kind == "CustomResourceDefinition" && key == "spec" {
			s.crd(fields)
			continue
		}
		fields[key] = s.value(fields[key], "."+key, shape.fieldOf(key))
	}
}

// crd leaves the schemas of a CRD as they are: they document, and describe what looks like
// variables of others.
func (s *substitution) crd(fields map[string]any) {
	spec, _ := fields["spec"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		if key != "versions" && key != "validation" {
			spec[key] = s.value(spec[key], ".spec."+key, nil)
		}
	}
}

// value replaces variables in a value and in all that it contains.
func (s *substitution) value(value any, at string, shape *shape) any {
	switch v := value.(type) {
	case map[string]any:
		return s.mapping(v, at, shape)
	case []any:
		for i, item := range v {
			v[i] = s.value(item, at+"["+strconv.Itoa(i)+"]", shape.item())
		}
	case string:
		return s.text(v, at, shape)
	}
	return value
}

func (s *substitution) mapping(fields map[string]any, at string, shape *shape) any {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		where := at + step(key)
		fields[key] = s.value(fields[key], where, shape.field(key))
		if !strings.Contains(key, "${") {
			continue
		}
		renamed, err := s.expand(key)
		if err != nil {
			s.fail(where, "in the key, "+err.Error())
			continue
		}
		if _, double := fields[renamed]; double && renamed != key {
			s.fail(where, "with its variables, the key is the same as another one")
			continue
		}
		value := fields[key]
		delete(fields, key)
		fields[renamed] = value
	}
	return fields
}

// plainStep is a key that needs no quotes in a path.
var plainStep = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func step(key string) string {
	if plainStep.MatchString(key) {
		return "." + key
	}
	return fmt.Sprintf("[%q]", shorten(key))
}

func (s *substitution) expand(text string) (string, error) {
	out, _, err := s.values.expand(text, 0)
	return out, err
}

// text replaces the variables of one text, and makes a number or a boolean of it where the field wants one.
func (s *substitution) text(text, at string, shape *shape) any {
	if !strings.Contains(text, "${") {
		return text
	}
	out, whole, err := s.values.expand(text, 0)
	if err != nil {
		s.fail(at, err.Error())
		return text
	}
	if content, quoted := unquote(text, out); quoted && !whole {
		return content
	}
	value, wanted := shape.read(out, whole)
	if wanted != "" {
		s.fail(at, "the field has to be "+wanted+", and with its variables it is none")
	}
	return value
}

// unquote takes off the double quotes that variables put around a value, as in ${quote}${version}${quote}: so a string stays one in
// Flux, which replaces variables in YAML.
func unquote(text, out string) (content string, quoted bool) {
	inner, begins := strings.CutPrefix(out, `"`)
	inner, ends := strings.CutSuffix(inner, `"`)
	variables := strings.HasPrefix(text, "${") && strings.HasSuffix(text, "}")
	return inner, begins && ends && variables && !strings.ContainsAny(inner, `"\\`)
}

func (s *substitution) fail(at, message string) {
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, Fault{strings.TrimPrefix(at, "."), message})
	}
}

// shorten bounds what a path quotes of an object.
func shorten(text string) string {
	const most = 120
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
