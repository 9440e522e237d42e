// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// ToAsk returns the kinds that the requirements are about, and whether they are about
// the version of Kubernetes. Nothing when requirements are off.
func (in Input) ToAsk() (kinds []schema.GroupVersionKind, version bool) {
	if !in.RequirementsPolicy.on() {
		return nil, false
	}
	var walk func([]requirement.Requirement)
	walk = func(requirements []requirement.Requirement) {
		for _, r := range requirements {
			switch r.Kind {
			case requirement.RequireCRD, requirement.RequireAPI, requirement.RequireGVK:
				kinds = append(kinds, r.GVK)
			}
			walk(r.Of)
			version = version || r.AsksVersion()
		}
	}
	walk(in.Requirements)
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(kinds), version
}

// requirements turns unmet requirements into violations, or into warnings.
func (in Input) requirements() ([]violation.Violation, []string) {
	if !in.RequirementsPolicy.on() {
		return nil, nil
	}
	reported := map[schema.GroupKind]bool{}
	for _, missing := range in.Missing {
		reported[missing.GroupKind()] = true
	}
	var violations []violation.Violation
	var warnings []string
	for _, r := range in.Requirements {
		if in.Facts.Met(r) || len(r.Of) == 0 && r.GVK.Kind != "" && reported[r.GVK.GroupKind()] {
			continue // reported already by an object of that kind in the bundle
		}
		violation := unmet(in.Facts, r)
		if in.RequirementsPolicy == Enforce {
			violations = append(violations, violation)
		} else {
			warnings = append(warnings, violation.Message)
		}
	}
	return violations, warnings
}

// unmet is the violation for a requirement that the cluster does not meet.
func unmet(f requirement.Facts, r requirement.Requirement) violation.Violation {
	const orWarn = "set spec.registryV1.requirements to Warn"
	violation := violation.Violation{Rule: violation.RequirementMissing}
	switch r.Kind {
	case requirement.RequireCRD:
		violation.Object = inventory.ID{Group: crds.DefinitionGroup, Kind: crds.DefinitionKind, Name: r.Name}
		violation.Message = fmt.Sprintf("the bundle needs the CustomResourceDefinition %s, and the cluster does not know kind %s of %s", r.Name, r.GVK.Kind, requirement.KindGroup(r.GVK))
		violation.Remedy = fmt.Sprintf("install what brings it for group %q, or, where the operator does without, %s", r.GVK.Group, orWarn)
	case requirement.RequireAPI, requirement.RequireGVK:
		violation.Message = fmt.Sprintf("the bundle needs kind %s of %s, which the cluster does not know", r.GVK.Kind, requirement.KindGroup(r.GVK))
		violation.Remedy = fmt.Sprintf("install what serves group %q in that version, or, where the operator does without, %s", r.GVK.Group, orWarn)
	case requirement.RequirePackage:
		violation.Message = "the bundle needs " + r.Text() + f.Instead(r.Name)
		violation.Remedy = fmt.Sprintf("install %s with a BundleDeployment in this namespace, or, where it comes from elsewhere, %s", r.Text(), orWarn)
	case requirement.RequireKubeVersion:
		violation.Message = fmt.Sprintf("the bundle needs Kubernetes %s or newer, and the cluster has %s", r.Versions, f.KubeVersion)
		violation.Remedy = "upgrade the cluster, install an older version of the bundle, or " + orWarn
		if f.KubeVersion == "" {
			violation.Message = fmt.Sprintf("the bundle needs Kubernetes %s or newer, and the account may not ask for the cluster's version", r.Versions)
			violation.Remedy = requirement.GrantVersion + ", or " + orWarn
		}
	default:
		violation.Message = "the bundle needs " + r.Text()
		if r.Message != "" {
			violation.Message += fmt.Sprintf(" (its author says: %s)", r.Message)
		}
		violation.Remedy = "install what is missing and remove what is excluded, packages with BundleDeployments in this namespace, or " + orWarn
		if f.KubeVersion == "" && r.AsksVersion() {
			violation.Remedy = "as the account may not ask for the cluster's version, " + requirement.GrantVersion + "; then " + violation.Remedy
		}
	}
	return violation
}
