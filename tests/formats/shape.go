// SPDX-License-Identifier: Apache-2.0

package formats

import (
	"fmt"
	"reflect"
	"strings"
)

// module is where the types come from that Shape looks into.
const module = "github.com/satchel-dev/satchel/internal/"

// Shape is the structure of Go types that are stored: the names of their fields, with tags and types. Types of the API and of other
// modules have versions of their own, and are only named.
func Shape(values ...any) []byte {
	s := shape{known: map[reflect.Type]bool{}}
	for _, value := range values {
		s.add(reflect.TypeOf(value))
	}
	return []byte(s.text.String())
}

type shape struct {
	text  strings.Builder
	known map[reflect.Type]bool
}

// add describes a type and those that it consists of, once each.
func (s *shape) add(of reflect.Type) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		s.add(of.Elem())
		return
	}
	if s.known[of] || of.Kind() != reflect.Struct || !strings.HasPrefix(of.PkgPath(), module) {
		return
	}
	s.known[of] = true
	fmt.Fprintf(&s.text, "%s\n", of)
	for field := range of.Fields() {
		fmt.Fprintf(&s.text, "\t%s %s %s\n", field.Name, field.Type, field.Tag)
	}
	for field := range of.Fields() {
		s.add(field.Type)
	}
}
