// SPDX-License-Identifier: Apache-2.0

package valueset

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// The types of JSON values.
const (
	typeString  = "string"
	typeInteger = "integer"
	typeNumber  = "number"
	typeBoolean = "boolean"
	typeObject  = "object"
	typeArray   = "array"
)

// applies maps keywords to the types that they constrain. Values of other types are valid.
var applies = map[string][]string{
	"minimum": {typeInteger, typeNumber}, "exclusiveMinimum": {typeInteger, typeNumber},
	"maximum": {typeInteger, typeNumber}, "exclusiveMaximum": {typeInteger, typeNumber},
	"multipleOf": {typeInteger, typeNumber}, "format": {typeInteger, typeNumber, typeString},
	"minLength": {typeString}, "maxLength": {typeString}, "pattern": {typeString},
	"minItems": {typeArray}, "maxItems": {typeArray}, "uniqueItems": {typeArray},
	"x-kubernetes-list-type": {typeArray}, "x-kubernetes-list-map-keys": {typeArray},
	"minProperties": {typeObject}, "maxProperties": {typeObject}, "required": {typeObject},
	"x-kubernetes-map-type": {typeObject},
}

// Normal returns a schema with the same meaning, in which constraints that exclude
// nothing are left out and others have one form. Properties, items and
// additionalProperties are taken over. The input is not changed.
func Normal(keywords map[string]any) map[string]any {
	return normal(keywords, typesOf(keywords))
}

// normal is Normal for a schema that only values of the types reach; the types of a part of a
// composition are those of the schema that has it.
func normal(keywords map[string]any, types []string) map[string]any {
	n := make(map[string]any, len(keywords))
	for keyword, value := range keywords {
		if limited, known := applies[keyword]; known && !overlap(limited, types) {
			continue
		}
		if value != nil && !excludesNothing[keyword][text(value)] {
			n[keyword] = value
		}
	}
	if len(types) == 1 && types[0] != typeObject && types[0] != typeArray {
		delete(n, "x-kubernetes-preserve-unknown-fields")
	}
	bounds(n, types)
	formats(n, types)
	patterns(n)
	enumeration(n)
	rules(n)
	compositions(n, types)
	lift(n)
	return n
}

// excludesNothing has the values of keywords that are as good as none.
var excludesNothing = map[string]map[string]bool{
	"minLength": {"0": true}, "minItems": {"0": true}, "minProperties": {"0": true},
	"uniqueItems": {"false": true}, "nullable": {"false": true}, "exclusiveMinimum": {"false": true}, "exclusiveMaximum": {"false": true},
	"x-kubernetes-embedded-resource": {"false": true}, "x-kubernetes-int-or-string": {"false": true}, "x-kubernetes-preserve-unknown-fields": {"false": true},
	"x-kubernetes-list-type": {`"atomic"`: true}, "required": {"[]": true}, "enum": {"[]": true}, "pattern": {`""`: true}, "format": {`""`: true},
}

// typesOf are the types of the values that the schema accepts, null aside.
func typesOf(keywords map[string]any) []string {
	named, _ := keywords["type"].(string)
	either, _ := keywords["x-kubernetes-int-or-string"].(bool)
	switch {
	case either:
		return []string{typeInteger, typeString}
	case named == typeNumber:
		return []string{typeNumber, typeInteger}
	case named != "":
		return []string{named}
	}
	return []string{typeString, typeInteger, typeNumber, typeBoolean, typeObject, typeArray}
}

func overlap(some, others []string) bool {
	return slices.ContainsFunc(some, func(one string) bool { return slices.Contains(others, one) })
}

// bounds of integers are inclusive and whole; those of all 64-bit integers exclude nothing.
func bounds(n map[string]any, types []string) {
	if n["minimum"] == nil {
		delete(n, "exclusiveMinimum")
	}
	if n["maximum"] == nil {
		delete(n, "exclusiveMaximum")
	}
	if slices.Contains(types, typeNumber) {
		return
	}
	whole(n, "minimum", "exclusiveMinimum", 1, math.MinInt64)
	whole(n, "maximum", "exclusiveMaximum", -1, math.MaxInt64)
	if text(n["multipleOf"]) == "1" {
		delete(n, "multipleOf")
	}
}

// whole makes a bound of integers inclusive, and leaves it out where all of them are within. Inward is the direction
// of the integers that it allows.
func whole(n map[string]any, keyword, exclusive string, inward, outmost float64) {
	bound, ok := number(n[keyword])
	switch {
	case !ok:
		return
	case math.Abs(bound) < 1<<53:
		rounded := inward * math.Ceil(inward*bound)
		if is(n, exclusive) && rounded == bound {
			rounded += inward
		}
		n[keyword] = int64(rounded)
	case inward*bound <= inward*outmost && !is(n, exclusive):
		delete(n, keyword)
	default:
		return
	}
	delete(n, exclusive)
}

// everyFormat is a version that knows all formats of strings that the API server validates.
var everyFormat = validation.StripUnsupportedFormatsPostProcessorForVersion(version.MajorMinor(1, 1000))

// formats that the API server does not validate exclude nothing, and neither do those of all
// integers, numbers and strings.
func formats(n map[string]any, types []string) {
	format, _ := n["format"].(string)
	if format == "" {
		return
	}
	named := ""
	if len(types) == 1 {
		named = types[0]
	} else if slices.Contains(types, typeNumber) && !slices.Contains(types, typeString) {
		named = typeNumber
	}
	of := &spec.Schema{SchemaProps: spec.SchemaProps{Format: format}}
	if named != "" {
		of.Type = spec.StringOrArray{named}
	}
	if err := everyFormat(of); err != nil {
		return
	}
	switch {
	case of.Format == "", named == typeInteger && format == "int64", named == typeNumber && format == "double", of.Format == "password":
		delete(n, "format")
	case named == typeString:
		n["format"] = strings.ReplaceAll(format, "-", "")
	}
}

// rules without the ones that always hold.
func rules(n map[string]any) {
	list, _ := n["x-kubernetes-validations"].([]any)
	var left []any
	for _, raw := range list {
		if rule, _ := raw.(map[string]any); rule == nil || text(rule["rule"]) != `"true"` {
			left = append(left, raw)
		}
	}
	if len(left) < len(list) {
		n["x-kubernetes-validations"] = left
	}
}

// enumeration is sorted, without repetitions.
func enumeration(n map[string]any) {
	list, ok := n["enum"].([]any)
	if !ok {
		return
	}
	byText := map[string]any{}
	var texts []string
	for _, value := range list {
		said := text(value)
		if _, twice := byText[said]; !twice {
			byText[said] = value
			texts = append(texts, said)
		}
	}
	slices.Sort(texts)
	sorted := make([]any, len(texts))
	for i, said := range texts {
		sorted[i] = byText[said]
	}
	n["enum"] = sorted
}

func is(keywords map[string]any, keyword string) bool {
	yes, _ := keywords[keyword].(bool)
	return yes
}

func number(value any) (float64, bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case int:
		return float64(value), true
	case float64:
		return value, true
	}
	return 0, false
}

// text is the JSON of a value; numbers that are equal have the same.
func text(value any) string {
	if n, ok := number(value); ok && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		value = int64(n)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(encoded)
}
