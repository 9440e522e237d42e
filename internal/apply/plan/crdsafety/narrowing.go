// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"fmt"
	"reflect"
	"slices"

	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

// comparators judge the changes between two decoded schemas, in this order: changes that
// only widen are settled first, changes without a comparator are refused last. Each removes
// what it has judged from both.
var comparators = []func(was, will *props) []finding{
	widening,
	crdify(&property.Default{}, config.EnforcementPolicyWarn),
	crdify(&property.Type{}, config.EnforcementPolicyError),
	crdify(&property.Enum{EnumConfig: property.EnumConfig{AdditionPolicy: property.AdditionPolicyAllow}}, config.EnforcementPolicyError),
	crdify(&property.Maximum{}, config.EnforcementPolicyError),
	crdify(&property.Minimum{}, config.EnforcementPolicyError),
	crdify(&property.MaxItems{}, config.EnforcementPolicyError),
	crdify(&property.MinItems{}, config.EnforcementPolicyError),
	crdify(&property.MaxLength{}, config.EnforcementPolicyError),
	crdify(&property.MinLength{}, config.EnforcementPolicyError),
	crdify(&property.MaxProperties{}, config.EnforcementPolicyError),
	crdify(&property.MinProperties{}, config.EnforcementPolicyError),
	crdify(&property.Nullable{NullableConfig: property.NullableConfig{AdditionPolicy: property.NullableAdditionPolicyAllow}}, config.EnforcementPolicyError),
	crdify(&property.Pattern{PatternConfig: property.PatternConfig{RemovalPolicy: property.PatternRemovalPolicyAllow}}, config.EnforcementPolicyError),
	narrowing,
	lists,
	validationRules,
	rest,
}

// crdify makes a comparator of one of crdify's.
func crdify(of interface {
	validations.Validation
	validations.Comparator[props]
}, policy config.EnforcementPolicy) func(was, will *props) []finding {
	of.SetEnforcement(policy)
	return func(was, will *props) []finding { return findings(of.Compare(was, will)) }
}

// findings of one of crdify's results.
func findings(result validations.ComparisonResult) []finding {
	var found []finding
	for _, says := range result.Errors {
		found = append(found, finding{about: about{kind: result.Name}, says: says})
	}
	for _, says := range result.Warnings {
		found = append(found, finding{about: about{kind: result.Name}, says: says, notable: true})
	}
	return found
}

// widening settles changes that crdify would refuse although every valid value
// stays valid:
//
//	enumeration dropped
//	any type               preserving unknown fields, without a type
//	integer -> number
//	integer, string        -> integer or string
func widening(was, will *props) []finding {
	if len(will.Enum) == 0 {
		was.Enum = nil
	}
	switch {
	case will.XIntOrString && (was.Type == "integer" || was.Type == "string"):
		was.Type = will.Type
		was.XIntOrString = true
	case will.Type == "" && preserves(will) && !will.XIntOrString:
		was.Type = ""
		was.XIntOrString = false
	case was.Type == "integer" && will.Type == "number":
		was.Type = will.Type
	}
	if was.Type != will.Type {
		was.XIntOrString = will.XIntOrString // the change of the type covers it
	}
	return nil
}

// findingList collects what comparisons find.
type findingList []finding

// when adds a finding, if the condition holds.
func (f *findingList) when(offends bool, kind, format string, args ...any) {
	if offends {
		*f = append(*f, finding{about: about{kind: kind}, says: fmt.Sprintf(format, args...)})
	}
}

// narrowing judges the constraints that crdify has no comparison for.
func narrowing(was, will *props) []finding {
	var found findingList
	found.when(will.Format != "" && will.Format != was.Format, "format",
		"format changed: %q -> %q", was.Format, will.Format)
	found.when(will.ExclusiveMaximum && !was.ExclusiveMaximum, "exclusiveMaximum", "maximum became exclusive")
	found.when(will.ExclusiveMinimum && !was.ExclusiveMinimum, "exclusiveMinimum", "minimum became exclusive")
	found.when(will.MultipleOf != nil && (was.MultipleOf == nil || *was.MultipleOf != *will.MultipleOf), "multipleOf", "multipleOf added or changed")
	found.when(preserves(was) && !preserves(will) && !anyProperties(will), "preserve", "fields that the schema does not know are no longer kept")
	found.when(anyProperties(was) && !anyProperties(will) && !preserves(will), "additionalProperties", "other properties are no longer allowed")
	found.when(will.XEmbeddedResource && !was.XEmbeddedResource, "embedded", "it has to be a resource of its own now")
	found.when(was.XIntOrString != will.XIntOrString, "intOrString", "x-kubernetes-int-or-string changed")
	for _, s := range []*props{was, will} {
		s.Format = ""
		s.ExclusiveMaximum = false
		s.ExclusiveMinimum = false
		s.MultipleOf = nil
		s.XPreserveUnknownFields = nil
		s.XEmbeddedResource = false
		s.XIntOrString = false
		s.AdditionalProperties = nil
	}
	return found
}

func preserves(s *props) bool { return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields }

// anyProperties tells whether properties of any kind are allowed and kept.
func anyProperties(s *props) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Allows
}

// lists judges the constraints on the entries of a list together. The merge strategy of maps makes
// nothing invalid.
func lists(was, will *props) []finding {
	var found findingList
	before := listType(was)
	after := listType(will)
	found.when(after != "atomic" && before != after, "listType", "list type changed: %s -> %s", before, after)
	found.when(after == "map" && before == "map" && !slices.Equal(slices.Sorted(slices.Values(was.XListMapKeys)), slices.Sorted(slices.Values(will.XListMapKeys))),
		"listMapKeys", "keys of the list changed")
	for _, s := range []*props{was, will} {
		s.XListType = nil
		s.XListMapKeys = nil
		s.XMapType = nil
	}
	return found
}

func listType(s *props) string {
	if s.XListType == nil {
		return "atomic"
	}
	return *s.XListType
}

// validationRules: a rule that is new or changed may refuse valid values;
// its message does not matter.
func validationRules(was, will *props) []finding {
	type rule struct {
		text    string
		without bool // holds also when there is no old value
	}
	before := map[rule]bool{}
	for _, r := range was.XValidations {
		before[rule{r.Rule, r.OptionalOldSelf != nil && *r.OptionalOldSelf}] = true
	}
	var found []finding
	for _, r := range will.XValidations {
		if !before[rule{r.Rule, r.OptionalOldSelf != nil && *r.OptionalOldSelf}] {
			found = append(found, finding{about: about{"rule", r.Rule}, says: fmt.Sprintf("new validation rule: %q", r.Rule)})
		}
	}
	was.XValidations = nil
	will.XValidations = nil
	return found
}

// rest refuses changes without a comparator: constraints that Kubernetes does
// not accept today.
func rest(was, will *props) []finding {
	if reflect.DeepEqual(was, will) {
		return nil
	}
	var found []finding
	before := reflect.ValueOf(*was)
	after := reflect.ValueOf(*will)
	for i := range before.NumField() {
		if name := before.Type().Field(i).Name; !reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
			found = append(found, finding{about: about{kind: name}, says: name + " changed"})
		}
	}
	return found
}
