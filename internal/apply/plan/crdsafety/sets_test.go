// SPDX-License-Identifier: Apache-2.0

package crdsafety_test

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
)

// sameOrMore are changes of one field in other words: no value that was valid is refused.
var sameOrMore = map[string][2]string{
	"boolean, listed":             {"type: boolean", "type: boolean, enum: [true, false]"},
	"boolean, listed before":      {"type: boolean, enum: [false, true]", "type: boolean"},
	"boolean, one of both":        {"type: boolean", "type: boolean, oneOf: [{enum: [true]}, {enum: [false]}]"},
	"boolean, any of both":        {"type: boolean", "type: boolean, anyOf: [{enum: [true]}, {enum: [false]}]"},
	"boolean, three values":       {"type: boolean", "type: boolean, enum: [true, false, true]"},
	"boolean of which one":        {"type: boolean, enum: [true]", "type: boolean, not: {enum: [false]}"},
	"boolean with a format":       {"type: boolean", "type: boolean, format: bool"},
	"boolean with a pattern":      {"type: boolean", `type: boolean, pattern: "^true$", maxLength: 1, minimum: 3`},
	"int64":                       {"type: integer", "type: integer, format: int64"},
	"int64 before":                {"type: integer, format: int64", "type: integer"},
	"int32 to int64":              {"type: integer, format: int32", "type: integer, format: int64"},
	"format of no integer":        {"type: integer", "type: integer, format: port"},
	"int32 of a small range":      {"type: integer, minimum: 0, maximum: 65535", "type: integer, minimum: 0, maximum: 65535, format: int32"},
	"all integers":                {"type: integer", "type: integer, minimum: -9223372036854775808, maximum: 9223372036854775807"},
	"bounds of int32":             {"type: integer, format: int32", "type: integer, format: int32, minimum: -2147483648, maximum: 2147483647"},
	"exclusive bound":             {"type: integer, minimum: 1", "type: integer, minimum: 0, exclusiveMinimum: true"},
	"exclusive bound above":       {"type: integer, maximum: 9", "type: integer, maximum: 10, exclusiveMaximum: true"},
	"inclusive bound":             {"type: integer, minimum: 0, exclusiveMinimum: true", "type: integer, minimum: 1"},
	"fraction as a bound":         {"type: integer, minimum: 1", "type: integer, minimum: 0.5"},
	"wider and exclusive":         {"type: number, maximum: 9", "type: number, maximum: 10, exclusiveMaximum: true"},
	"exclusive without a bound":   {"type: integer", "type: integer, exclusiveMinimum: true"},
	"multiple of one":             {"type: integer", "type: integer, multipleOf: 1"},
	"multiple of a divisor":       {"type: integer, multipleOf: 6", "type: integer, multipleOf: 3"},
	"bounds removed":              {"type: integer, minimum: -9223372036854775808", "type: integer"},
	"number, double":              {"type: number", "type: number, format: double"},
	"few integers, listed":        {"type: integer, minimum: 1, maximum: 3", "type: integer, enum: [3, 2, 1]"},
	"listed, as a range":          {"type: integer, enum: [1, 2, 3]", "type: integer, minimum: 1, maximum: 3"},
	"listed numbers are integers": {"type: number, enum: [1, 2]", "type: integer"},
	"one and 1.0":                 {"type: number, enum: [1, 2]", "type: number, enum: [1.0, 2.0]"},
	"order of an enum":            {"type: string, enum: [a, b]", "type: string, enum: [b, a]"},
	"enum with a repetition":      {"type: string, enum: [a, b]", "type: string, enum: [a, b, a]"},
	"enum that cannot be null":    {"type: string, enum: [a, null]", "type: string, enum: [a]"},
	"enum as a pattern":           {"type: string, enum: [a, b]", `type: string, pattern: "^(a|b)$"`},
	"enum with a pattern":         {"type: string, enum: [a, b]", `type: string, enum: [a, b], pattern: "^[a-z]$", maxLength: 1, minLength: 1`},
	"enum without null":           {"type: string, enum: [a, b]", `type: string, enum: [a, b, "", c], minLength: 0`},
	"pattern as an enum":          {`type: string, pattern: "^(a|b)$"`, "type: string, enum: [a, b]"},
	"enum as alternatives":        {"type: string, enum: [a, b]", "type: string, oneOf: [{enum: [a]}, {enum: [b]}]"},
	"alternatives as an enum":     {"type: string, anyOf: [{enum: [a]}, {enum: [b]}]", "type: string, enum: [a, b]"},
	"enum as a condition":         {"type: string, enum: [a, b]", "type: string, allOf: [{enum: [a, b]}]"},
	"enum of a condition":         {"type: string, allOf: [{enum: [a, b]}, {enum: [b, c]}]", "type: string, enum: [b]"},
	"any pattern":                 {"type: string", `type: string, pattern: ".*"`},
	"any text as a pattern":       {"type: string", `type: string, pattern: "^[\\s\\S]*$"`},
	"beginning as a pattern":      {"type: string", `type: string, pattern: "^"`},
	"empty pattern":               {"type: string", `type: string, pattern: ""`},
	"pattern with a group":        {`type: string, pattern: "^(?:[0-9]+)$"`, `type: string, pattern: "^([0-9]+)$"`},
	"pattern by a class":          {`type: string, pattern: "^[0-9]+$"`, `type: string, pattern: "^\\d+$"`},
	"length of a pattern":         {`type: string, pattern: "^[a-z]{1,63}$"`, `type: string, pattern: "^[a-z]{1,63}$", minLength: 1, maxLength: 63`},
	"least length zero":           {"type: string", "type: string, minLength: 0"},
	"most length widened":         {"type: string, maxLength: 5", "type: string, maxLength: 6"},
	"password":                    {"type: string", "type: string, format: password"},
	"format that is not checked":  {"type: string", "type: string, format: quantity"},
	"format with a dash":          {"type: string, format: date-time", "type: string, format: datetime"},
	"number's bound on a string":  {"type: string", "type: string, minimum: 1, maxItems: 0"},
	"not nullable":                {"type: string", "type: string, nullable: false"},
	"nullable":                    {"type: string", "type: string, nullable: true"},
	"null in an enum":             {"type: string, nullable: true, enum: [a, null]", "type: string, nullable: true, enum: [a]"}, // the API server refuses null there, listed or not
	"null beside an enum":         {"type: string, nullable: true, enum: [a]", "type: string, enum: [a]"},
	"unknown fields of a string":  {"type: string, x-kubernetes-preserve-unknown-fields: true", "type: string"},
	"unknown fields, default":     {"type: object", "type: object, x-kubernetes-preserve-unknown-fields: false, x-kubernetes-embedded-resource: false"},
	"kept, as properties":         {"type: object, x-kubernetes-preserve-unknown-fields: true", "type: object, additionalProperties: true"},
	"properties that are kept":    {"type: object, additionalProperties: true", "type: object, x-kubernetes-preserve-unknown-fields: true"},
	"map of values kept":          {"type: object, additionalProperties: {type: string}", "type: object, additionalProperties: true"},
	"least items zero":            {"type: array, items: {type: string}", "type: array, items: {type: string}, minItems: 0, uniqueItems: false"},
	"most items widened":          {"type: array, items: {type: string}, maxItems: 3", "type: array, items: {type: string}, maxItems: 4"},
	"set of one":                  {"type: array, items: {type: string}, maxItems: 1", "type: array, items: {type: string}, maxItems: 1, x-kubernetes-list-type: set"},
	"atomic, said":                {"type: array, items: {type: string}", "type: array, items: {type: string}, x-kubernetes-list-type: atomic"},
	"most properties":             {"type: object, properties: {a: {type: string}, b: {type: string}}", "type: object, properties: {a: {type: string}, b: {type: string}}, maxProperties: 2"},
	"least properties":            {"type: object, required: [a], properties: {a: {type: string}}", "type: object, required: [a], minProperties: 1, properties: {a: {type: string}}"},
	"required in another order":   {"type: object, required: [a, b], properties: {a: {type: string}, b: {type: string}}", "type: object, required: [b, a], properties: {a: {type: string}, b: {type: string}}"},
	"required, with a default":    {"type: object, properties: {a: {type: string, default: x}}", "type: object, required: [a], properties: {a: {type: string, default: x}}"},
	"required by a condition":     {"type: object, allOf: [{required: [a]}], properties: {a: {type: string}}", "type: object, required: [a], properties: {a: {type: string}}"},
	"required by every way":       {"type: object, anyOf: [{required: [a, b]}, {required: [a]}], properties: {a: {type: string}, b: {type: string}}", "type: object, required: [a], properties: {a: {type: string}, b: {type: string}}"},
	"condition for what is so":    {"type: object, required: [a], properties: {a: {type: string}, b: {type: string}}", "type: object, required: [a], anyOf: [{required: [a]}, {required: [b]}], properties: {a: {type: string}, b: {type: string}}"},
	"all types":                   {"x-kubernetes-preserve-unknown-fields: true", "x-kubernetes-preserve-unknown-fields: true, anyOf: [{type: string}, {type: integer}, {type: number}, {type: boolean}, {type: object}, {type: array}]"},
	"one of all types":            {"x-kubernetes-preserve-unknown-fields: true", "x-kubernetes-preserve-unknown-fields: true, oneOf: [{type: string}, {type: number}, {type: boolean}, {type: object}, {type: array}]"},
	"either, of both":             {"x-kubernetes-int-or-string: true", "x-kubernetes-int-or-string: true, oneOf: [{type: integer}, {type: string}]"},
	"either, of integers":         {"type: integer", "x-kubernetes-int-or-string: true, anyOf: [{type: integer}]"},
	"either, with a number":       {"x-kubernetes-int-or-string: true", "x-kubernetes-int-or-string: true, format: int32"},
	"condition that is none":      {"type: string", "type: string, allOf: [{}, {minLength: 0}], anyOf: [{}]"},
	"bound as a condition":        {"type: integer, maximum: 9", "type: integer, allOf: [{maximum: 9}]"},
	"condition as a bound":        {"type: integer, allOf: [{maximum: 9}]", "type: integer, maximum: 9"},
	"only way as a condition":     {"type: integer, maximum: 9", "type: integer, anyOf: [{maximum: 9}]"},
	"ways in another order":       {"type: integer, anyOf: [{maximum: 9}, {minimum: 20}]", "type: integer, anyOf: [{minimum: 20, description: x}, {maximum: 9}]"},
	"ways that are wider":         {"type: integer, anyOf: [{maximum: 9}, {minimum: 20}]", "type: integer, anyOf: [{maximum: 10}, {minimum: 19}]"},
	"not what it is not":          {"type: string, enum: [a]", "type: string, enum: [a], not: {enum: [b]}"},
	"rule that always holds":      {"type: string", `type: string, x-kubernetes-validations: [{rule: "true"}]`},
}

// fewer are changes that refuse a value that was valid, and look like the ones above.
var fewer = map[string][2]string{
	"boolean, one listed":        {"type: boolean", "type: boolean, enum: [true]"},
	"boolean or null, listed":    {"type: boolean, nullable: true", "type: boolean, nullable: true, enum: [true, false]"},
	"boolean, one of one":        {"type: boolean", "type: boolean, oneOf: [{enum: [true]}, {enum: [true, false]}]"},
	"int32":                      {"type: integer", "type: integer, format: int32"},
	"int32 of a large range":     {"type: integer, minimum: 0, maximum: 4294967295", "type: integer, minimum: 0, maximum: 4294967295, format: int32"},
	"exclusive bound":            {"type: integer, minimum: 1", "type: integer, minimum: 1, exclusiveMinimum: true"},
	"exclusive bound of numbers": {"type: number, minimum: 1", "type: number, minimum: 0.5, exclusiveMinimum: true, maximum: 3"},
	"multiple of a multiple":     {"type: integer, multipleOf: 3", "type: integer, multipleOf: 6"},
	"multiple of one, numbers":   {"type: number", "type: number, multipleOf: 1"},
	"few integers, fewer listed": {"type: integer, minimum: 1, maximum: 3", "type: integer, enum: [1, 2]"},
	"listed, as a small range":   {"type: integer, enum: [1, 2, 3]", "type: integer, minimum: 2, maximum: 3"},
	"listed numbers":             {"type: number, enum: [1, 2.5]", "type: integer"},
	"enum as a small pattern":    {"type: string, enum: [a, b]", `type: string, pattern: "^a$"`},
	"pattern as a small enum":    {`type: string, pattern: "^(a|b|c)$"`, "type: string, enum: [a, b]"},
	"pattern without an end":     {`type: string, pattern: "^(a|b)"`, "type: string, enum: [a, b]"},
	"pattern without lines":      {"type: string", `type: string, pattern: "^.*$"`},
	"pattern of one character":   {"type: string", `type: string, pattern: "."`},
	"length of an open pattern":  {`type: string, pattern: "[a-z]{1,63}"`, `type: string, pattern: "[a-z]{1,63}", maxLength: 63`},
	"case of a pattern":          {`type: string, pattern: "^(?i)a$"`, `type: string, enum: [a]`},
	"format that is checked":     {"type: string", "type: string, format: date-time"},
	"least length":               {"type: string", "type: string, minLength: 1"},
	"null":                       {"type: string, nullable: true", "type: string"},
	"null in an enum of all":     {"type: boolean, nullable: true", "type: boolean, nullable: true, enum: [true, false, null]"},
	"unknown fields":             {"type: object, x-kubernetes-preserve-unknown-fields: true", "type: object"},
	"most items":                 {"type: array, items: {type: string}", "type: array, items: {type: string}, maxItems: 3"},
	"set of two":                 {"type: array, items: {type: string}, maxItems: 2", "type: array, items: {type: string}, maxItems: 2, x-kubernetes-list-type: set"},
	"most properties":            {"type: object, properties: {a: {type: string}, b: {type: string}}", "type: object, properties: {a: {type: string}, b: {type: string}}, maxProperties: 1"},
	"most properties of a map":   {"type: object, additionalProperties: {type: string}", "type: object, additionalProperties: {type: string}, maxProperties: 9"},
	"required by one way":        {"type: object, anyOf: [{required: [a]}, {required: [b]}], properties: {a: {type: string}, b: {type: string}}", "type: object, required: [a], properties: {a: {type: string}, b: {type: string}}"},
	"not all types":              {"x-kubernetes-preserve-unknown-fields: true", "x-kubernetes-preserve-unknown-fields: true, anyOf: [{type: string}, {type: integer}, {type: boolean}, {type: object}, {type: array}]"},
	"one of two that overlap":    {"x-kubernetes-preserve-unknown-fields: true", "x-kubernetes-preserve-unknown-fields: true, oneOf: [{type: string}, {type: number}, {type: integer}, {type: boolean}, {type: object}, {type: array}]"},
	"either, of one":             {"x-kubernetes-int-or-string: true", "x-kubernetes-int-or-string: true, anyOf: [{type: integer}]"},
	"bound as a condition":       {"type: integer, maximum: 9", "type: integer, allOf: [{maximum: 8}]"},
	"two conditions":             {"type: integer, maximum: 9", "type: integer, maximum: 9, allOf: [{maximum: 8}, {maximum: 20}]"},
	"ways that are narrower":     {"type: integer, anyOf: [{maximum: 9}, {minimum: 20}]", "type: integer, anyOf: [{maximum: 8}, {minimum: 20}]"},
	"not what it is":             {"type: string, enum: [a, b]", "type: string, enum: [a, b], not: {enum: [b]}"},
	"rule":                       {"type: string", `type: string, x-kubernetes-validations: [{rule: "self != ''"}]`},
}

// olm-sameset: it is sets of values that are compared, not keywords.
func TestJudgeSetsOfValues(t *testing.T) {
	for name, change := range sameOrMore {
		t.Run("same or more/"+name, func(t *testing.T) {
			if got := judgedField(t, change); len(got) > 0 {
				t.Errorf("{%s} -> {%s}: refused: %q", change[0], change[1], got)
			}
		})
	}
	for name, change := range fewer {
		t.Run("fewer/"+name, func(t *testing.T) {
			if got := judgedField(t, change); len(got) == 0 {
				t.Errorf("{%s} -> {%s}: passes", change[0], change[1])
			}
		})
	}
}

func judgedField(t *testing.T, change [2]string) []string {
	t.Helper()
	const field = "port: {type: integer}"
	was := edit{field, "port: {" + change[0] + "}"}
	will := edit{field, "port: {" + change[1] + "}"}
	got, err := crdsafety.Judge(t.Context(), crd(t, live, was), crd(t, live, will))
	if err != nil || got.Unjudged != "" {
		t.Fatal(err, got.Unjudged)
	}
	for _, found := range texts(got.Breaking) {
		if !strings.Contains(found, ".spec.port") {
			t.Errorf("another field: %q", found)
		}
	}
	return texts(got.Breaking)
}
