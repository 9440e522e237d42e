// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/crd/scope"
	"sigs.k8s.io/crdify/pkg/validations/crd/storedversionremoval"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

type schema = apiextensionsv1.JSONSchemaProps

// comparator judges one aspect of a schema, given copies of it that it may change:
// what it has judged it takes out of both.
type comparator struct {
	name    string
	compare func(was, will *schema) []string
}

// Compare implements crdify's comparator.
func (c comparator) Compare(was, will *schema) validations.ComparisonResult {
	return validations.ComparisonResult{Name: c.name, Errors: c.compare(was, will)}
}

func definitionComparators() []validations.Comparator[apiextensionsv1.CustomResourceDefinition] {
	scopes, stored := &scope.Scope{}, &storedversionremoval.StoredVersionRemoval{}
	scopes.SetEnforcement(config.EnforcementPolicyError)
	stored.SetEnforcement(config.EnforcementPolicyError)
	return []validations.Comparator[apiextensionsv1.CustomResourceDefinition]{scopes, stored}
}

// schemaComparators judge what changed between two schemas of one field, in this
// order: what goes and what only widens is settled first, what nobody judged is
// refused last, and nothing is left over.
func schemaComparators() []validations.Comparator[schema] {
	strict := func(v interface {
		validations.Validation
		validations.Comparator[schema]
	}, policy config.EnforcementPolicy) validations.Comparator[schema] {
		v.SetEnforcement(policy)
		return v
	}
	refuse, tell := config.EnforcementPolicyError, config.EnforcementPolicyWarn
	return []validations.Comparator[schema]{
		comparator{"removal", removal},
		comparator{"widening", widening},
		strict(&property.Default{}, tell),
		strict(&property.Type{}, refuse),
		strict(&property.Enum{EnumConfig: property.EnumConfig{AdditionPolicy: property.AdditionPolicyAllow}}, refuse),
		strict(&property.Maximum{}, refuse), strict(&property.Minimum{}, refuse),
		strict(&property.MaxItems{}, refuse), strict(&property.MinItems{}, refuse),
		strict(&property.MaxLength{}, refuse), strict(&property.MinLength{}, refuse),
		strict(&property.MaxProperties{}, refuse), strict(&property.MinProperties{}, refuse),
		strict(&property.Nullable{NullableConfig: property.NullableConfig{AdditionPolicy: property.NullableAdditionPolicyAllow}}, refuse),
		strict(&property.Pattern{PatternConfig: property.PatternConfig{RemovalPolicy: property.PatternRemovalPolicyAllow}}, refuse),
		comparator{"required", required},
		comparator{"narrowing", narrowing},
		comparator{"rules", rules},
		comparator{"composition", compositions},
		comparator{"rest", rest},
	}
}

// removal: crdify compares a field that went with an empty schema, which no field
// can have.
func removal(was, will *schema) []string {
	if !equal(will, &schema{}) || equal(was, will) {
		return nil
	}
	*was = schema{}
	return []string{"field removed"}
}

// widening settles what crdify would refuse although everything that was valid
// stays valid: an enumeration that is given up, a string or integer that becomes
// either.
func widening(was, will *schema) []string {
	if len(will.Enum) == 0 {
		was.Enum = nil
	}
	if will.XIntOrString && (was.Type == "string" || was.Type == "integer") {
		was.Type, was.XIntOrString = will.Type, true
	}
	return nil
}

// required: crdify names several fields in no order.
func required(was, will *schema) []string {
	var found []string
	for _, name := range will.Required {
		if !slices.Contains(was.Required, name) {
			found = append(found, fmt.Sprintf("new required field: %q", name))
		}
	}
	was.Required, will.Required = nil, nil
	return found
}
