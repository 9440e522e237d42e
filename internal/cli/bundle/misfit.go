// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// fault is a node of a YAML document that does not fit its type.
type fault struct {
	line          int
	path, message string
}

// String names the line and the path.
func (f fault) String() string {
	if f.path == "" {
		return fmt.Sprintf("line %d: it %s", f.line, f.message)
	}
	return fmt.Sprintf("line %d: %s %s", f.line, f.path, f.message)
}

// walker compares a YAML document with a Go type. Aliases are followed once the decoder has bounded what they repeat.
type walker struct {
	faults []fault
	left   int // nodes that may still be visited
}

// Bounds of what is reported about one document.
const (
	mostFaults = 20
	mostNodes  = 100_000
)

// misfits returns where a YAML document does not fit the type, as JSON decodes it: unknown and repeated fields, wrong types.
// The path is where the node stands.
func misfits[T any](node *goyaml.Node, path string) []fault {
	w := &walker{left: mostNodes}
	w.value(node, reflect.TypeFor[T](), path)
	return w.faults
}

func (w *walker) report(node *goyaml.Node, path, format string, args ...any) {
	if len(w.faults) < mostFaults {
		w.faults = append(w.faults, fault{line: node.Line, path: path, message: fmt.Sprintf(format, args...)})
	}
}

var jsonDecoder = reflect.TypeFor[json.Unmarshaler]()

func (w *walker) value(node *goyaml.Node, t reflect.Type, path string) {
	for node.Kind == goyaml.AliasNode {
		node = node.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if w.left--; w.left < 0 || node.ShortTag() == "!!null" {
		return
	}
	switch {
	case reflect.PointerTo(t).Implements(jsonDecoder):
		w.itself(node, t, path)
	case t.Kind() == reflect.Struct:
		w.record(node, t, path)
	case t.Kind() == reflect.Map:
		w.dictionary(node, t.Elem(), path)
	case t.Kind() == reflect.Slice:
		w.list(node, t.Elem(), path)
	default:
		w.scalar(node, t, path)
	}
}

// itself uses the decoder of a type that has one, such as a quantity.
func (w *walker) itself(node *goyaml.Node, t reflect.Type, path string) {
	text, err := goyaml.Marshal(node)
	if err == nil {
		err = yaml.Unmarshal(text, reflect.New(t).Interface())
	}
	if err != nil {
		w.report(node, path, "is not a valid %s", t.Name())
	}
}

func (w *walker) record(node *goyaml.Node, t reflect.Type, path string) {
	if !w.is(node, goyaml.MappingNode, "a mapping", path) {
		return
	}
	fields := fieldsOf(t)
	w.entries(node, path, func(key, value *goyaml.Node, below string) {
		if known, found := fields[key.Value]; found {
			w.value(value, known, below)
			return
		}
		w.report(key, below, "is not a known field%s", meant(key.Value, fields))
	})
}

func (w *walker) dictionary(node *goyaml.Node, element reflect.Type, path string) {
	if w.is(node, goyaml.MappingNode, "a mapping", path) {
		w.entries(node, path, func(_, value *goyaml.Node, below string) { w.value(value, element, below) })
	}
}

// entries visits the entries of a mapping, repeated ones apart.
func (w *walker) entries(node *goyaml.Node, path string, visit func(key, value *goyaml.Node, below string)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		below := strings.TrimPrefix(path+"."+key.Value, ".")
		if seen[key.Value] {
			w.report(key, below, "is given twice")
			continue
		}
		seen[key.Value] = true
		visit(key, value, below)
	}
}

func (w *walker) list(node *goyaml.Node, element reflect.Type, path string) {
	if !w.is(node, goyaml.SequenceNode, "a list", path) {
		return
	}
	for i, item := range node.Content {
		w.value(item, element, fmt.Sprintf("%s[%d]", path, i))
	}
}

func (w *walker) scalar(node *goyaml.Node, t reflect.Type, path string) {
	wanted, tag := "a whole number", "!!int"
	switch t.Kind() {
	case reflect.String:
		wanted, tag = "a string", "!!str"
	case reflect.Bool:
		wanted, tag = "true or false", "!!bool"
	}
	if node.Kind != goyaml.ScalarNode || node.ShortTag() != tag {
		w.report(node, path, "is %s, not %s%s", describeNode(node), wanted, quoteIt(node, tag))
	}
}

// is says whether a node is of the wanted sort, and reports it when it is not.
func (w *walker) is(node *goyaml.Node, sort goyaml.Kind, wanted, path string) bool {
	if node.Kind != sort {
		w.report(node, path, "is %s, not %s", describeNode(node), wanted)
	}
	return node.Kind == sort
}

func quoteIt(node *goyaml.Node, tag string) string {
	if tag == "!!str" && node.Kind == goyaml.ScalarNode {
		return "; put it into quotation marks"
	}
	return ""
}

func describeNode(node *goyaml.Node) string {
	switch {
	case node.Kind == goyaml.MappingNode:
		return "a mapping"
	case node.Kind == goyaml.SequenceNode:
		return "a list"
	}
	switch node.ShortTag() {
	case "!!str":
		return "a string"
	case "!!bool":
		return "a boolean"
	case "!!int", "!!float":
		return "a number"
	}
	return "something else"
}

// fieldsOf returns the JSON fields of a struct, those of embedded structs too.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			for inner, of := range fieldsOf(f.Type) {
				fields[inner] = of
			}
		case name != "" && name != "-":
			fields[name] = f.Type
		}
	}
	return fields
}

// meant suggests a field with a similar name.
func meant(given string, fields map[string]reflect.Type) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	near := kit.Nearest(strings.ToLower(given), names)
	if len(near) == 0 || kit.Distance(strings.ToLower(given), strings.ToLower(near[0])) > 3 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", near[0])
}
