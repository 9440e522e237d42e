// SPDX-License-Identifier: Apache-2.0

package valueset

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// mostValues bounds the sets of values that are looked at one by one, and mostBytes the schemas that
// they are validated against.
const mostValues, mostBytes = 64, 16 << 10

// valuesOf lists the values that a schema accepts, when they are few and none has fields or entries.
func valuesOf(keywords map[string]any) (values []any, few bool) {
	if values, few = candidates(keywords, typesOf(keywords)); !few || len(values) > mostValues {
		return nil, false
	}
	if _, listed := keywords["enum"]; is(keywords, "nullable") && !listed {
		values = append(slices.Clone(values), nil)
	}
	for _, value := range values {
		switch value.(type) {
		case map[string]any, []any:
			return nil, false
		}
	}
	valid := validator(keywords)
	if valid == nil {
		return nil, false
	}
	return slices.DeleteFunc(slices.Clone(values), func(value any) bool { return !valid(value) }), true
}

// candidates are values among which are all that the schema accepts.
func candidates(keywords map[string]any, types []string) (values []any, few bool) {
	if listed, ok := keywords["enum"].([]any); ok {
		return listed, true
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if values, few = together(parts(keywords, keyword)); few {
			return values, true
		}
	}
	for _, part := range parts(keywords, "allOf") {
		if part["type"] == nil && len(types) == 1 {
			part = maps.Clone(part)
			part["type"] = types[0]
		}
		if values, few = candidates(part, types); few {
			return values, true
		}
	}
	if len(types) != 1 {
		return nil, false
	}
	switch types[0] {
	case typeBoolean:
		return []any{false, true}, true
	case typeInteger:
		return integers(keywords)
	case typeString:
		pattern, _ := keywords["pattern"].(string)
		words, few := language(pattern)
		for _, word := range words {
			values = append(values, word)
		}
		return values, few
	}
	return nil, false
}

// together are the values of several alternatives.
func together(alternatives []map[string]any) (values []any, few bool) {
	for _, part := range alternatives {
		more, few := candidates(part, typesOf(part))
		if values = append(values, more...); !few || len(values) > mostValues {
			return nil, false
		}
	}
	return values, len(alternatives) > 0
}

// mostIntegers bounds ranges, which take no space in a CRD.
const mostIntegers = 16

func integers(keywords map[string]any) (values []any, few bool) {
	least, most := span(keywords)
	if math.IsInf(least, 0) || math.IsInf(most, 0) || most-least >= mostIntegers || math.Abs(least) > 1<<53 {
		return nil, false
	}
	for n := math.Ceil(least); n <= most; n++ {
		values = append(values, int64(n))
	}
	return values, true
}

func allValid(values []any, keywords map[string]any) bool {
	valid := validator(keywords)
	return valid != nil && !slices.ContainsFunc(values, func(value any) bool { return !valid(value) })
}

func noneValid(values []any, keywords map[string]any) bool {
	valid := validator(keywords)
	return valid != nil && !slices.ContainsFunc(values, valid)
}

// validator is that of the API server for a schema, without what is below it, for values without fields
// and entries; nil when it cannot be had.
func validator(keywords map[string]any) func(value any) bool {
	flat := map[string]any{}
	for keyword, value := range keywords {
		if constrains(keyword) {
			flat[keyword] = value
		}
	}
	encoded, err := json.Marshal(flat)
	if err != nil || len(encoded) > mostBytes {
		return nil
	}
	schema := &spec.Schema{}
	if err := json.Unmarshal(encoded, schema); err != nil {
		return nil
	}
	if is(keywords, "x-kubernetes-int-or-string") && len(schema.Type) == 0 {
		schema.Type = spec.StringOrArray{typeInteger, typeString}
	}
	of := validate.NewSchemaValidator(schema, nil, "", strfmt.Default)
	return func(value any) bool {
		if n, ok := value.(float64); ok && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			value = int64(n)
		}
		return of.Validate(value).IsValid()
	}
}
