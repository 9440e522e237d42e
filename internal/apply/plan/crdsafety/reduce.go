// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// simplify takes out of a schema, at every depth, what is only said to people, and
// does not count as required what a default supplies.
func simplify(s *schema) {
	s.Description, s.Title, s.Example, s.ExternalDocs = "", "", nil, nil
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return s.Properties[name].Default != nil })
	for _, list := range [][]schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			simplify(&list[i])
		}
	}
	for _, children := range []map[string]schema{s.Properties, s.PatternProperties, s.Definitions} {
		for name, child := range children {
			simplify(&child)
			children[name] = child
		}
	}
	for _, child := range []*schema{s.Not, itemsOf(s.Items), orBool(s.AdditionalProperties), orBool(s.AdditionalItems)} {
		if child != nil {
			simplify(child)
		}
	}
}

func itemsOf(items *apiextensionsv1.JSONSchemaPropsOrArray) *schema {
	if items == nil {
		return nil
	}
	return items.Schema
}

func orBool(of *apiextensionsv1.JSONSchemaPropsOrBool) *schema {
	if of == nil {
		return nil
	}
	return of.Schema
}

// differing gives copies of two schemas without the fields that are equal in both,
// those that are new, and what lies below those that are gone; crdify copies whole
// trees at every field, which is seconds for large CRDs otherwise. Nil when the
// schemas are equal.
func differing(was, will *schema) (before, after *schema) {
	if equal(was, will) {
		return nil, nil
	}
	before, after = new(*was), new(*will)
	before.Properties, after.Properties = map[string]schema{}, map[string]schema{}
	before.Items, after.Items = nil, nil
	for name := range was.Properties {
		there, exists := will.Properties[name]
		if !exists && preserves(will) {
			continue // its values are kept all the same
		}
		a, b := child(new(was.Properties[name]), &there, exists)
		if a != nil {
			before.Properties[name] = *a
		}
		if b != nil {
			after.Properties[name] = *b
		}
	}
	items := itemsOf(will.Items)
	if a, b := child(itemsOf(was.Items), items, items != nil); a != nil {
		before.Items, after.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: a}, &apiextensionsv1.JSONSchemaPropsOrArray{Schema: b}
	}
	before.AdditionalProperties, after.AdditionalProperties = properties(was, will)
	return before, after
}

// child is differing for what lies below; exists tells whether will has it.
func child(was, will *schema, exists bool) (before, after *schema) {
	switch {
	case was == nil:
		return nil, nil
	case exists:
		return differing(was, will)
	}
	gone := *was
	gone.Properties, gone.Items, gone.AdditionalProperties = nil, nil, nil
	return &gone, nil
}

// properties is differing for additionalProperties, which may be a mere yes.
func properties(was, will *schema) (before, after *apiextensionsv1.JSONSchemaPropsOrBool) {
	if was.AdditionalProperties == nil || preserves(will) || anyProperties(will) {
		return nil, nil // there is nothing to lose
	}
	a, b := *was.AdditionalProperties, apiextensionsv1.JSONSchemaPropsOrBool{}
	if will.AdditionalProperties != nil {
		b = *will.AdditionalProperties
	}
	if a.Schema != nil {
		a.Schema, b.Schema = child(a.Schema, b.Schema, b.Schema != nil)
	}
	return &a, &b
}
