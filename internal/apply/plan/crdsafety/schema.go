// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// schema is a raw schema. Only differing schemas are decoded, one at
// a time and without those below it: the decoded form of a whole CRD takes hundreds
// of times its size.
type schema struct {
	state    state
	keywords map[string]any
	resource bool // a whole resource
}

type state int

const (
	// absent: the value does not exist, and a given one is dropped.
	absent state = iota
	// undeclared: it has no schema, and any value is kept.
	undeclared
	// declared by keywords.
	declared
	// malformed: it is not a schema.
	malformed
)

// props is a decoded schema.
type props = apiextensionsv1.JSONSchemaProps

// kind of the value of a keyword.
type kind int

const (
	anyValue kind = iota
	schemasByName
	schemaOrList
	wording // said to people only
)

// kinds of the keywords that hold other than plain values.
var kinds = map[string]kind{
	"properties": schemasByName, "patternProperties": schemasByName, "definitions": schemasByName, "dependencies": schemasByName,
	"items": schemaOrList, "additionalItems": schemaOrList, "additionalProperties": schemaOrList,
	"allOf": schemaOrList, "anyOf": schemaOrList, "oneOf": schemaOrList, "not": schemaOrList,
	"description": wording, "title": wording, "example": wording, "externalDocs": wording,
}

const (
	preserveKeyword    = "x-kubernetes-preserve-unknown-fields"
	embeddedKeyword    = "x-kubernetes-embedded-resource"
	intOrStringKeyword = "x-kubernetes-int-or-string"
)

// implied are the fields that every resource has, whether or not its schema
// declares them.
var implied = map[string]schema{
	"apiVersion": {state: declared, keywords: map[string]any{"type": "string"}},
	"kind":       {state: declared, keywords: map[string]any{"type": "string"}},
	"metadata":   {state: declared, keywords: map[string]any{"type": "object", preserveKeyword: true}},
}

// root returns the schema of a version; nil when it has none.
func root(version any) any {
	fields, _ := version.(map[string]any)
	schema, _ := fields["schema"].(map[string]any)
	return schema["openAPIV3Schema"]
}

// rootOf is the schema of a version, for whole resources.
func rootOf(version any) schema {
	keywords := map[string]any{"type": "object", preserveKeyword: true}
	if raw := root(version); raw != nil {
		written, ok := raw.(map[string]any)
		if !ok {
			return schema{state: malformed}
		}
		keywords = maps.Clone(written)
	}
	keywords[embeddedKeyword] = true
	return schema{state: declared, keywords: keywords, resource: true}
}

func schemaOf(raw any) schema {
	switch value := raw.(type) {
	case nil:
		return schema{state: declared}
	case map[string]any:
		return schema{state: declared, keywords: value}
	}
	return schema{state: malformed}
}

func (s schema) is(keyword string) bool {
	yes, _ := s.keywords[keyword].(bool)
	return yes
}

// accepts tells whether the schema accepts and keeps values of all types.
func (s schema) accepts() bool {
	named, _ := s.keywords["type"].(string)
	return s.state == undeclared || s.is(preserveKeyword) && named == "" && !s.is(intOrStringKeyword)
}

func (s schema) properties() map[string]any {
	properties, _ := s.keywords["properties"].(map[string]any)
	return properties
}

// names of the fields that the schema has, sorted.
func (s schema) names() []string {
	all := slices.Collect(maps.Keys(s.properties()))
	if s.is(embeddedKeyword) {
		all = slices.AppendSeq(all, maps.Keys(implied))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// property is the schema for a field.
func (s schema) property(name string) schema {
	raw, found := s.properties()[name]
	of := schemaOf(raw)
	always, isImplied := implied[name]
	isImplied = isImplied && s.is(embeddedKeyword)
	switch {
	case isImplied && (!found || len(of.keywords) == 0):
		return always
	case isImplied && name == "metadata" && of.state == declared:
		of.keywords = maps.Clone(of.keywords) // all fields are kept, whatever the schema declares
		of.keywords[preserveKeyword] = true
		return of
	case found:
		return of
	}
	return s.others()
}

// others is the schema for undeclared fields.
func (s schema) others() schema {
	if s.state != declared {
		return s
	}
	switch others := s.keywords["additionalProperties"].(type) {
	case map[string]any:
		return schemaOf(others)
	case bool:
		if others {
			return schema{state: undeclared}
		}
	}
	return s.unmentioned()
}

// items is the schema of the entries of a list.
func (s schema) items() schema {
	if s.state != declared {
		return s
	}
	if items, ok := s.keywords["items"].(map[string]any); ok {
		return schemaOf(items)
	}
	return s.unmentioned()
}

func (s schema) unmentioned() schema {
	if s.is(preserveKeyword) {
		return schema{state: undeclared}
	}
	return schema{}
}

// required are the fields that a value must contain: those without a default.
func (s schema) required() []string {
	list, _ := s.keywords["required"].([]any)
	var all []string
	for _, one := range list {
		name, _ := one.(string)
		property, _ := s.properties()[name].(map[string]any)
		if property["default"] == nil {
			all = append(all, name)
		}
	}
	return all
}

// always tells whether every resource has the field, whatever its schema requires.
func (s schema) always(name string) bool {
	return s.is(embeddedKeyword) && (name == "apiVersion" || name == "kind" || name == "metadata" && s.resource)
}

// own tells whether a keyword is about the value itself: neither a description nor a
// schema that is compared separately.
func own(keyword string, value any) bool {
	_, ok := value.(map[string]any)
	switch {
	case kinds[keyword] == wording:
		return false
	case keyword == "properties" || keyword == "items" || keyword == "additionalProperties":
		return !ok && value != nil
	}
	return true
}

// alike tells whether the own keywords of two schemas are identical.
func alike(was, will schema) bool {
	for keyword, value := range was.keywords {
		if own(keyword, value) && !reflect.DeepEqual(value, will.keywords[keyword]) {
			return false
		}
	}
	for keyword, value := range will.keywords {
		before, found := was.keywords[keyword]
		if own(keyword, value) && (!found || !own(keyword, before)) {
			return false
		}
	}
	return true
}

// isDecoded tells whether a keyword of a schema is decoded. Schemas in it are not: the walk compares them one by one.
func isDecoded(keyword string, value any) bool {
	switch keyword {
	case "required":
		return false // the walk compares it, in the order of the names
	case "additionalProperties":
		_, isBool := value.(bool)
		return isBool // and no schema
	case "properties":
		_, isMap := value.(map[string]any)
		return !isMap // decoding reports what is wrong with it
	}
	return kinds[keyword] == anyValue
}

// decoded returns the keywords that are compared as values of Go types: see isDecoded.
func (s schema) decoded() (*props, error) {
	flat := map[string]any{}
	for keyword, value := range s.keywords {
		if isDecoded(keyword, value) {
			flat[keyword] = value
		}
	}
	into := &props{}
	return into, runtime.DefaultUnstructuredConverter.FromUnstructured(flat, into)
}
