// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// measure is one of the sizes of a CRD that are bounded. Comparing takes time and
// memory in proportion to them, and all tenants share the controller. The CRDs of
// real operators reach a fifth of the limits at most.
type measure int

const (
	versions measure = iota
	schemas
	levels
	names
	composed
	entries
	rules
	bytes
	steps
)

// limits by measure. They are sizes, never times, so that the result for a CRD is
// always the same.
var limits = [...]struct {
	most int
	says string
}{
	versions: {50, "has %d versions"},
	schemas:  {40_000, "has %d fields, items and other schemas"},
	levels:   {100, "nests %d levels or more"},
	names:    {253, "has a name of %d characters"},
	composed: {10_000, "has %d schemas in allOf, anyOf, oneOf and not"},
	entries:  {40_000, "has %d entries of required, enum and keys of lists"},
	rules:    {10_000, "has %d validation rules"},
	bytes:    {4 << 20, "has %d bytes beside its descriptions"},
	steps:    {60_000, "takes %d comparisons of schemas"},
}

// sizes of a CRD.
type sizes [len(limits)]int

// beyond describes the exceeded limit; empty when none is.
func (s *sizes) beyond() string {
	for of, limit := range limits {
		if s[of] > limit.most {
			return fmt.Sprintf(limit.says+", and at most %d can be judged", s[of], limit.most)
		}
	}
	return ""
}

// measured sums up the raw CRD, before anything else is done with it.
// Input that is not a CRD is measured, too.
func measured(object *unstructured.Unstructured) *sizes {
	s := &sizes{}
	spec, _ := object.Object["spec"].(map[string]any)
	for key, value := range spec {
		if key != "versions" {
			s.value(value, 0)
		}
	}
	all, _ := spec["versions"].([]any)
	stored, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "storedVersions")
	storedVersions, _ := stored.([]any)
	s[versions] = max(len(all), len(storedVersions))
	s.value(storedVersions, 0)
	for _, version := range all {
		s.version(version)
	}
	return s
}

func (s *sizes) version(raw any) {
	fields, ok := raw.(map[string]any)
	if !ok {
		s.value(raw, 0)
		return
	}
	name, _ := fields["name"].(string)
	s[names] = max(s[names], len(name))
	for key, value := range fields {
		if key != "schema" {
			s.value(value, 0)
		}
	}
	s.schema(root(fields), 1)
}

// schema adds a schema with all that is below it. Schemas below the last permitted level
// are skipped.
func (s *sizes) schema(raw any, level int) {
	s[schemas]++
	s[levels] = max(s[levels], level)
	keywords, ok := raw.(map[string]any)
	if !ok || level > limits[levels].most {
		s.value(raw, level)
		return
	}
	for keyword, value := range keywords {
		if kinds[keyword] == wording {
			continue // it is not compared
		}
		s.text(keyword)
		switch list, _ := value.([]any); keyword {
		case "allOf", "anyOf", "oneOf":
			s[composed] += len(list)
		case "not":
			s[composed]++
		case "required", "enum", "x-kubernetes-list-map-keys":
			s[entries] += len(list)
		case "x-kubernetes-validations":
			s[rules] += len(list)
		}
		s.keyword(kinds[keyword], value, level)
	}
}

func (s *sizes) keyword(of kind, value any, level int) {
	if list, ok := value.([]any); ok && of == schemaOrList {
		for _, one := range list {
			s.schema(one, level+1)
		}
		return
	}
	named, ok := value.(map[string]any)
	switch {
	case of == schemaOrList:
		s.schema(value, level+1)
	case of == schemasByName && ok:
		for name, one := range named {
			s[names] = max(s[names], len(name))
			s.text(name)
			s.schema(one, level+1)
		}
	default:
		s.value(value, level)
	}
}

// value adds any other value.
func (s *sizes) value(raw any, level int) {
	s[levels] = max(s[levels], level)
	s[bytes] += 8
	if level > limits[levels].most {
		return
	}
	switch value := raw.(type) {
	case string:
		s.text(value)
	case []any:
		for _, one := range value {
			s.value(one, level+1)
		}
	case map[string]any:
		for key, one := range value {
			s.text(key)
			s.value(one, level+1)
		}
	}
}

// text adds a string, up to its length in a message.
func (s *sizes) text(of string) {
	s[bytes] += len(of)
	for i := range len(of) {
		if c := of[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			s[bytes] += len(`\u003c`) - 1
		}
	}
}
