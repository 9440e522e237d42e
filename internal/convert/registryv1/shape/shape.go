// SPDX-License-Identifier: Apache-2.0

// Package shape fits values that were read from YAML or JSON to the Go type of an API, and names what does not fit. It knows
// the types' JSON tags, and nothing of what the values mean.
package shape

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// form is what a JSON value has to be.
type form int

const (
	anything form = iota
	text
	truth
	whole
	number
	record // a struct
	list
	dictionary
	choice // one of several shapes, by what the value is
	opaque // a type that reads itself
	absent // what the API server never accepts there
)

// Shape is what a Go API type accepts, in JSON. Fitting a value to its shape gives the same as decoding it into the type
// and encoding it again, at a fraction of the cost, and finds all wrong types at once, with their paths.
type Shape struct {
	form    form
	typ     reflect.Type     // opaque
	fields  map[string]field // record
	missing []string         // fields of a record that are written even when they are zero
	element *Shape           // list, dictionary
	choices []*Shape         // choice
}

type field struct {
	*Shape
	pointer   bool // a zero value says something
	omitEmpty bool
}

// shapes compiles types, each once, so that recursive types end.
type shapes map[reflect.Type]*Shape

// Of is the shape of a type.
func Of[T any]() *Shape { return shapes{}.shapeOf(reflect.TypeFor[T]()) }

// Partial is the shape of a record that takes any value in the fields of the first list, drops those of the second one,
// and adds no missing fields.
func (s *Shape) Partial(anyValue, dropped []string) *Shape {
	made := *s
	made.fields, made.missing = maps.Clone(s.fields), nil
	for _, name := range anyValue {
		made.fields[name] = field{Shape: &Shape{}}
	}
	for _, name := range dropped {
		delete(made.fields, name)
	}
	return &made
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// special are the types of CustomResourceDefinitions that read themselves but contain shapes.
var special = map[reflect.Type][]reflect.Type{
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        {reflect.TypeFor[apiextensions.JSONSchemaProps](), reflect.TypeFor[bool]()},
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       {reflect.TypeFor[apiextensions.JSONSchemaProps](), reflect.TypeFor[[]apiextensions.JSONSchemaProps]()},
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): {reflect.TypeFor[apiextensions.JSONSchemaProps](), reflect.TypeFor[[]string]()},
}

func (c shapes) shapeOf(t reflect.Type) *Shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known, ok := c[t]; ok {
		return known
	}
	s := &Shape{typ: t}
	c[t] = s
	c.compile(s, t)
	return s
}

func (c shapes) compile(s *Shape, t reflect.Type) {
	if options, ok := special[t]; ok {
		s.form = choice
		for _, option := range options {
			s.choices = append(s.choices, c.shapeOf(option))
		}
		return
	}
	switch {
	case t == reflect.TypeFor[apiextensions.JSON](), t == reflect.TypeFor[json.RawMessage]():
		return
	case reflect.PointerTo(t).Implements(unmarshaler):
		s.form = opaque
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		s.form, s.fields = record, map[string]field{}
		c.record(s, t)
	case reflect.Map:
		s.form, s.element = dictionary, c.shapeOf(t.Elem())
	case reflect.Slice:
		c.slice(s, t)
	default:
		s.form = simple(t.Kind())
	}
}

func (c shapes) slice(s *Shape, t reflect.Type) {
	if t.Elem().Kind() == reflect.Uint8 {
		s.form = text
		return
	}
	s.form, s.element = list, c.shapeOf(t.Elem())
}

func simple(kind reflect.Kind) form {
	switch kind {
	case reflect.String:
		return text
	case reflect.Bool:
		return truth
	case reflect.Float32, reflect.Float64:
		return number
	case reflect.Interface:
		return anything
	default:
		return whole
	}
}

func (c shapes) record(s *Shape, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case name == "" && f.Anonymous && f.Type.Kind() == reflect.Pointer:
			missing := s.missing
			c.record(s, f.Type.Elem())
			s.missing = missing // without the embedded struct, none of its fields is written
			continue
		case name == "" && f.Anonymous:
			c.record(s, f.Type)
			continue
		case name == "":
			name = f.Name
		}
		if t == reflect.TypeFor[apiextensions.JSONSchemaProps]() && name == "$ref" {
			s.fields[name] = field{Shape: &Shape{form: absent}, omitEmpty: true}
			continue
		}
		omit := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		s.fields[name] = field{Shape: c.shapeOf(f.Type), pointer: f.Type.Kind() == reflect.Pointer, omitEmpty: omit}
		if !omit && f.Type.Kind() != reflect.Pointer {
			s.missing = append(s.missing, name)
		}
	}
}
