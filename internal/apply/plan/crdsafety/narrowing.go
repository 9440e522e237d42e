// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

// wider are formats whose values include those of another.
var wider = map[string]string{"int32": "int64", "float": "double"}

// narrowing judges the constraints that crdify has no comparison for.
func narrowing(was, will *schema) []string {
	var found []string
	tell := func(offends bool, format string, args ...any) {
		if offends {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	tell(will.Format != "" && will.Format != was.Format && wider[was.Format] != will.Format,
		"format changed: %q -> %q", was.Format, will.Format)
	tell(will.ExclusiveMaximum && !was.ExclusiveMaximum, "maximum became exclusive")
	tell(will.ExclusiveMinimum && !was.ExclusiveMinimum, "minimum became exclusive")
	tell(will.MultipleOf != nil && (was.MultipleOf == nil || *was.MultipleOf != *will.MultipleOf), "multipleOf added or changed")
	tell(preserves(was) && !preserves(will), "fields that the schema does not know are no longer kept")
	tell(anyProperties(was) && !anyProperties(will), "other properties are no longer allowed")
	tell(was.XEmbeddedResource != will.XEmbeddedResource, "x-kubernetes-embedded-resource changed")
	before, after := listType(was), listType(will)
	tell(after != "atomic" && before != after, "list type changed: %s -> %s", before, after)
	tell(after == "map" && before == "map" && !slices.Equal(was.XListMapKeys, will.XListMapKeys), "keys of the list changed")
	for _, s := range []*schema{was, will} {
		s.Format, s.ExclusiveMaximum, s.ExclusiveMinimum, s.MultipleOf = "", false, false, nil
		s.XPreserveUnknownFields, s.XEmbeddedResource, s.AdditionalProperties = nil, false, nil
		s.XListType, s.XListMapKeys, s.XMapType = nil, nil, nil // how maps merge makes nothing invalid
	}
	return found
}

func preserves(s *schema) bool { return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields }

// anyProperties tells whether properties of any kind are allowed and kept.
func anyProperties(s *schema) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Allows && s.AdditionalProperties.Schema == nil
}

func listType(s *schema) string {
	if s.XListType == nil {
		return "atomic"
	}
	return *s.XListType
}

// rules: a rule that is new, or reads differently, may refuse what was valid; how
// it words its refusal does not matter.
func rules(was, will *schema) []string {
	type rule struct {
		text    string
		without bool // holds also when there is no old value
	}
	of := func(s *schema) (all []rule) {
		for _, r := range s.XValidations {
			all = append(all, rule{r.Rule, r.OptionalOldSelf != nil && *r.OptionalOldSelf})
		}
		return all
	}
	before := of(was)
	var found []string
	for _, r := range of(will) {
		if !slices.Contains(before, r) {
			found = append(found, fmt.Sprintf("new validation rule: %q", r.text))
		}
	}
	was.XValidations, will.XValidations = nil, nil
	return found
}

// compositions compares lists of schemas as sets, for their order means nothing.
//
//	no longer there        widens
//	allOf with fewer       widens
//	anyOf with more        widens
//	else                   refused: whether it narrows is not decided
func compositions(was, will *schema) []string {
	var found []string
	for _, c := range []struct {
		name       string
		was, will  []schema
		more, less bool // widens
	}{
		{"allOf", was.AllOf, will.AllOf, false, true},
		{"anyOf", was.AnyOf, will.AnyOf, len(was.AnyOf) > 0, false},
		{"oneOf", was.OneOf, will.OneOf, false, false},
	} {
		added, removed := !contains(c.was, c.will), !contains(c.will, c.was)
		if len(c.will) == 0 || (!added || c.more) && (!removed || c.less) {
			continue
		}
		found = append(found, c.name+" changed")
	}
	if will.Not != nil && !equal(was.Not, will.Not) {
		found = append(found, "not changed")
	}
	for _, s := range []*schema{was, will} {
		s.AllOf, s.AnyOf, s.OneOf, s.Not = nil, nil, nil, nil
	}
	return found
}

// contains tells whether all the parts are in the whole.
func contains(whole, parts []schema) bool {
	return !slices.ContainsFunc(parts, func(part schema) bool {
		return !slices.ContainsFunc(whole, func(s schema) bool { return equal(&s, &part) })
	})
}

// rest refuses what changed and nobody judged: constraints that Kubernetes does
// not take today. It leaves nothing for crdify, which would print both schemas.
func rest(was, will *schema) []string {
	var found []string
	before, after := reflect.ValueOf(*was), reflect.ValueOf(*will)
	for i := range before.NumField() {
		if !equality.Semantic.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
			found = append(found, before.Type().Field(i).Name+" changed")
		}
	}
	*was, *will = schema{}, schema{}
	return found
}

func equal(a, b *schema) bool { return equality.Semantic.DeepEqual(a, b) }
