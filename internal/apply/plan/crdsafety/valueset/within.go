// SPDX-License-Identifier: Apache-2.0

package valueset

import (
	"maps"
	"math"
	"reflect"
	"slices"
)

// Settle returns what of a schema may exclude a value that was valid: its constraints without those
// that every value of the former schema meets. Both are in the normal form; neither is changed.
func Settle(was, will map[string]any) map[string]any {
	settled := maps.Clone(will)
	if values, few := valuesOf(was); few && allValid(values, will) {
		maps.DeleteFunc(settled, func(keyword string, _ any) bool { return constrains(keyword) })
		for keyword, value := range was {
			if constrains(keyword) {
				settled[keyword] = value
			}
		}
		return settled
	}
	d := &decision{left: mostSteps}
	for keyword, value := range will {
		if keyword == "type" || keyword == "x-kubernetes-int-or-string" || !constrains(keyword) || reflect.DeepEqual(was[keyword], value) {
			continue
		}
		if keyword == "allOf" {
			d.conditions(settled, was, value)
		} else if d.meets(was, keyword, will) {
			delete(settled, keyword)
			delete(settled, exclusive[keyword])
		}
	}
	return settled
}

// Required are the fields that each valid value has, without those that a default supplies: a stored value may be older
// than the default.
func Required(keywords map[string]any) map[string]bool {
	fields := required(keywords)
	properties, _ := keywords["properties"].(map[string]any)
	maps.DeleteFunc(fields, func(field string, _ bool) bool {
		property, _ := properties[field].(map[string]any)
		return property["default"] != nil
	})
	return fields
}

// required are the fields that a schema or one of its conditions requires, or each of its alternatives.
func required(keywords map[string]any) map[string]bool {
	fields := map[string]bool{}
	list, _ := keywords["required"].([]any)
	for _, raw := range list {
		if name, ok := raw.(string); ok {
			fields[name] = true
		}
	}
	for _, part := range parts(keywords, "allOf") {
		maps.Copy(fields, required(part))
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		var common map[string]bool
		for i, part := range parts(keywords, keyword) {
			of := required(part)
			if i == 0 {
				common = of
			}
			maps.DeleteFunc(common, func(field string, _ bool) bool { return !of[field] })
		}
		maps.Copy(fields, common)
	}
	return fields
}

var exclusive = map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}

// constrains tells whether a keyword decides which values are valid, apart from those below it.
func constrains(keyword string) bool {
	switch keyword {
	case "type", "x-kubernetes-int-or-string", "enum", "allOf", "anyOf", "oneOf", "not", "nullable":
		return true
	case "x-kubernetes-map-type", "required":
		return false
	}
	return applies[keyword] != nil
}

// mostSteps bounds how many pairs of a constraint and a schema are looked at.
const mostSteps = 10_000

// decision counts down what may still be looked at. When nothing is left, nothing is known to be met.
type decision struct{ left int }

// stepsOfValues is what it takes to look at values one by one.
const stepsOfValues = 500

func (d *decision) valuesOf(keywords map[string]any) (values []any, few bool) {
	if d.left -= stepsOfValues; d.left < 0 {
		return nil, false
	}
	return valuesOf(keywords)
}

// conditions leaves out the parts of allOf that all values meet.
func (d *decision) conditions(settled, was map[string]any, value any) {
	parts, _ := value.([]any)
	var left []any
	for _, raw := range parts {
		if part, ok := raw.(map[string]any); !ok || !d.covers(part, was) {
			left = append(left, raw)
		}
	}
	if len(left) == 0 {
		delete(settled, "allOf")
	} else {
		settled["allOf"] = left
	}
}

// meets tells whether all values of a schema meet one constraint of another: by the schema's own
// constraints, by one of its conditions, or by each of its alternatives.
func (d *decision) meets(was map[string]any, keyword string, will map[string]any) bool {
	if d.left--; d.left < 0 {
		return false
	}
	if limited, known := applies[keyword]; known && !overlap(limited, typesOf(was)) {
		return true
	}
	if d.own(was, keyword, will) {
		return true
	}
	each := func(part map[string]any) bool { return d.meets(part, keyword, will) }
	return slices.ContainsFunc(parts(was, "allOf"), each) || all(parts(was, "anyOf"), each) || all(parts(was, "oneOf"), each)
}

func all(parts []map[string]any, holds func(map[string]any) bool) bool {
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(part map[string]any) bool { return !holds(part) })
}

func parts(of map[string]any, keyword string) []map[string]any {
	list, _ := of[keyword].([]any)
	var schemas []map[string]any
	for _, raw := range list {
		if part, ok := raw.(map[string]any); ok {
			schemas = append(schemas, part)
		}
	}
	return schemas
}

func (d *decision) own(was map[string]any, keyword string, will map[string]any) bool {
	if limits := ranges[keyword]; limits != nil {
		return limits(was, will)
	}
	if compare := conditions[keyword]; compare != nil {
		return compare(d, was, will)
	}
	switch keyword {
	case "anyOf":
		return d.alternatives(was, parts(will, keyword))
	case "oneOf":
		return d.exactlyOne(was, parts(will, keyword))
	case "not":
		part, ok := will[keyword].(map[string]any)
		return ok && d.disjoint(part, was)
	}
	return text(was[keyword]) == text(will[keyword])
}

// conditions decide whether all values of a schema meet a constraint of another.
var conditions = map[string]func(d *decision, was, will map[string]any) bool{
	"exclusiveMinimum": never, "exclusiveMaximum": never, "enum": (*decision).enum, "pattern": pattern, "multipleOf": multiple,
	"format": format, "required": (*decision).required, "x-kubernetes-list-type": single,
}

// never: it goes with the bound that it belongs to.
func never(*decision, map[string]any, map[string]any) bool { return false }

// single: the entries of a list of one are unique.
func single(_ *decision, was, will map[string]any) bool {
	return will["x-kubernetes-list-type"] == "set" && most(was, "maxItems") <= 1
}

func (d *decision) enum(was, will map[string]any) bool {
	values, few := d.valuesOf(was)
	return few && allValid(values, map[string]any{"enum": will["enum"]})
}

func pattern(_ *decision, was, will map[string]any) bool {
	before, _ := was["pattern"].(string)
	after, _ := will["pattern"].(string)
	return samePattern(before, after)
}

func multiple(_ *decision, was, will map[string]any) bool {
	before, ok := number(was["multipleOf"])
	after, okToo := number(will["multipleOf"])
	return ok && okToo && after > 0 && before == math.Trunc(before) && after == math.Trunc(after) && math.Mod(before, after) == 0
}

func format(_ *decision, was, will map[string]any) bool {
	if text(was["format"]) == text(will["format"]) {
		return true
	}
	least, greatest := span(was)
	whole := !overlap(typesOf(was), []string{typeString, typeNumber})
	return will["format"] == "int32" && whole && least >= math.MinInt32 && greatest <= math.MaxInt32
}

func (d *decision) required(was, will map[string]any) bool {
	before, _ := was["required"].([]any)
	after, _ := will["required"].([]any)
	if d.left -= len(before) + len(after); d.left < 0 {
		return false
	}
	fields := required(map[string]any{"required": before})
	return !slices.ContainsFunc(after, func(raw any) bool { name, ok := raw.(string); return !ok || !fields[name] })
}

// covers tells whether each value of a schema is valid under a part of a composition.
func (d *decision) covers(part, was map[string]any) bool {
	if d.left--; d.left < 0 {
		return false
	}
	if part["type"] != nil || is(part, "x-kubernetes-int-or-string") {
		types := typesOf(part)
		if slices.ContainsFunc(typesOf(was), func(one string) bool { return !slices.Contains(types, one) }) {
			return false
		}
	}
	for keyword := range part {
		switch {
		case keyword == "type", keyword == "x-kubernetes-int-or-string", keyword == "nullable", wordings[keyword]:
		case keyword == "allOf":
			if !all(parts(part, keyword), func(one map[string]any) bool { return d.covers(one, was) }) {
				return false
			}
		case keyword == "exclusiveMinimum" && part["minimum"] != nil, keyword == "exclusiveMaximum" && part["maximum"] != nil:
		case !d.meets(was, keyword, part):
			return false
		}
	}
	return true
}

// alternatives tells whether each value is valid under at least one part, by type and by the former alternatives.
func (d *decision) alternatives(was map[string]any, among []map[string]any) bool {
	for _, one := range byType(was) {
		if !slices.ContainsFunc(among, func(part map[string]any) bool { return d.covers(part, one) }) {
			return all(parts(was, "anyOf"), func(former map[string]any) bool {
				return slices.ContainsFunc(among, func(part map[string]any) bool { return text(part) == text(former) || d.covers(part, former) })
			})
		}
	}
	return true
}

// exactlyOne tells whether each value is valid under one part and no other.
func (d *decision) exactlyOne(was map[string]any, among []map[string]any) bool {
	for _, one := range byType(was) {
		covering, apart := 0, 0
		for _, part := range among {
			switch {
			case d.covers(part, one):
				covering++
			case d.disjoint(part, one):
				apart++
			}
		}
		if covering != 1 || covering+apart != len(among) {
			return false
		}
	}
	return true
}

// byType are the schemas of a schema's values of each type.
func byType(was map[string]any) []map[string]any {
	types := typesOf(was)
	if slices.Contains(types, typeNumber) { // its values include the integers
		types = slices.DeleteFunc(types, func(one string) bool { return one == typeInteger })
	}
	if len(types) == 1 {
		return []map[string]any{was}
	}
	var split []map[string]any
	for _, one := range types {
		of := maps.Clone(was)
		delete(of, "x-kubernetes-int-or-string")
		of["type"] = one
		split = append(split, of)
	}
	return split
}

// disjoint tells whether no value is valid under both.
func (d *decision) disjoint(part, was map[string]any) bool {
	if !overlap(typesOf(part), typesOf(was)) {
		return true
	}
	if values, few := d.valuesOf(was); few && len(values) > 0 {
		return noneValid(values, part)
	}
	if values, few := d.valuesOf(part); few && len(values) > 0 {
		return noneValid(values, was)
	}
	return false
}

// ranges compare bounds: the values of the first schema are within that of the second.
var ranges = map[string]func(was, will map[string]any) bool{
	"minimum": func(was, will map[string]any) bool {
		least, _ := span(was)
		bound, ok := number(will["minimum"])
		return ok && (least > bound || least == bound && (!is(will, "exclusiveMinimum") || is(was, "exclusiveMinimum")))
	},
	"maximum": func(was, will map[string]any) bool {
		_, most := span(was)
		bound, ok := number(will["maximum"])
		return ok && (most < bound || most == bound && (!is(will, "exclusiveMaximum") || is(was, "exclusiveMaximum")))
	},
	"minLength": func(was, will map[string]any) bool {
		pattern, _ := was["pattern"].(string)
		fewest, _ := lengths(pattern)
		return max(least(was, "minLength"), float64(fewest)) >= least(will, "minLength")
	},
	"maxLength": func(was, will map[string]any) bool {
		longest := most(was, "maxLength")
		pattern, _ := was["pattern"].(string)
		if _, bound := lengths(pattern); bound >= 0 {
			longest = min(longest, float64(bound))
		}
		return longest <= most(will, "maxLength")
	},
	"minItems": func(was, will map[string]any) bool { return least(was, "minItems") >= least(will, "minItems") },
	"maxItems": func(was, will map[string]any) bool { return most(was, "maxItems") <= most(will, "maxItems") },
	"minProperties": func(was, will map[string]any) bool {
		required, _ := was["required"].([]any)
		return max(least(was, "minProperties"), float64(len(required))) >= least(will, "minProperties")
	},
	"maxProperties": func(was, will map[string]any) bool { return properties(was) <= most(will, "maxProperties") },
}

// properties is the most properties that a value has.
func properties(of map[string]any) float64 {
	bound := most(of, "maxProperties")
	named, closed := of["properties"].(map[string]any)
	open := of["additionalProperties"] != nil || is(of, "x-kubernetes-preserve-unknown-fields") || is(of, "x-kubernetes-embedded-resource")
	if closed && !open {
		bound = min(bound, float64(len(named)))
	}
	return bound
}

func least(of map[string]any, keyword string) float64 {
	bound, _ := number(of[keyword])
	return bound
}

func most(of map[string]any, keyword string) float64 {
	if bound, ok := number(of[keyword]); ok {
		return bound
	}
	return math.Inf(1)
}

// span is the least and the greatest number that the schema accepts.
func span(of map[string]any) (least, greatest float64) {
	least, greatest = math.Inf(-1), math.Inf(1)
	if bound, ok := number(of["minimum"]); ok {
		least = bound
	}
	if bound, ok := number(of["maximum"]); ok {
		greatest = bound
	}
	if of["format"] == "int32" && of["type"] == typeInteger {
		least, greatest = max(least, math.MinInt32), min(greatest, math.MaxInt32)
	}
	return least, greatest
}
