// SPDX-License-Identifier: Apache-2.0

package valueset

import "slices"

// lift moves the constraints of allOf to the schema itself, where it has none of the kind: both forms mean the same. The
// parts have the normal form.
func lift(n map[string]any) {
	if list, _ := n["allOf"].([]any); len(parts(n, "allOf")) < len(list) {
		return // one of them is no schema
	}
	var left []any
	for _, part := range parts(n, "allOf") {
		if !lifts(n, part) {
			left = append(left, part)
			continue
		}
		for keyword, value := range part {
			n[keyword] = value
		}
	}
	switch {
	case len(left) > 0:
		n["allOf"] = left
	case len(parts(n, "allOf")) > 0:
		delete(n, "allOf")
	}
}

// lifted are the keywords of a part that mean the same on the schema itself, and those that belong together.
var lifted = map[string]string{
	"minimum": "exclusiveMinimum", "exclusiveMinimum": "minimum", "maximum": "exclusiveMaximum", "exclusiveMaximum": "maximum",
	"multipleOf": "", "minLength": "", "maxLength": "", "pattern": "", "format": "", "minItems": "", "maxItems": "",
	"minProperties": "", "maxProperties": "", "enum": "",
}

func lifts(n, part map[string]any) bool {
	for keyword := range part {
		with, can := lifted[keyword]
		if !can || n[keyword] != nil || with != "" && n[with] != nil {
			return false
		}
	}
	return true
}

var wordings = map[string]bool{"description": true, "title": true, "example": true, "externalDocs": true}

// compositions are sets of schemas in their normal form. One alternative is a condition, and an
// alternative that excludes nothing makes anyOf exclude nothing.
func compositions(n map[string]any, types []string) {
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, ok := n[keyword].([]any)
		if !ok {
			continue
		}
		parts, understood := normalParts(list, types)
		if !understood {
			continue
		}
		empty := func(part any) bool { of, ok := part.(map[string]any); return ok && len(of) == 0 }
		if keyword != "oneOf" {
			slices.SortFunc(parts, byText)
			parts = slices.CompactFunc(parts, func(a, b any) bool { return text(a) == text(b) })
		}
		if keyword == "allOf" {
			parts = slices.DeleteFunc(parts, empty)
		}
		if n[keyword] = parts; len(parts) == 0 || keyword == "anyOf" && slices.ContainsFunc(parts, empty) {
			delete(n, keyword)
		}
	}
	if part, ok := n["not"].(map[string]any); ok {
		n["not"] = normal(part, typesWithin(part, types))
	}
}

func normalParts(list []any, types []string) (parts []any, understood bool) {
	for _, raw := range list {
		part, ok := raw.(map[string]any)
		if !ok {
			return nil, false
		}
		n := normal(part, typesWithin(part, types))
		for keyword := range wordings {
			delete(n, keyword)
		}
		parts = append(parts, n)
	}
	return parts, true
}

// typesWithin are the types that reach what is below the type of a part.
func typesWithin(part map[string]any, types []string) []string {
	own := typesOf(part)
	var both []string
	for _, one := range types {
		if slices.Contains(own, one) {
			both = append(both, one)
		}
	}
	return both
}

func byText(a, b any) int {
	left, right := text(a), text(b)
	switch {
	case left < right:
		return -1
	case left > right:
		return 1
	}
	return 0
}
