// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// ToAsk returns the kinds that the requirements are about, and whether they are about
// the version of Kubernetes. Nothing when requirements are off.
func (in Input) ToAsk() (kinds []schema.GroupVersionKind, version bool) {
	if !in.RequirementsPolicy.on() {
		return nil, false
	}
	return requirement.Asked(in.Requirements)
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
		unmet := in.Facts.Unmet(r)
		if in.RequirementsPolicy == Enforce {
			violations = append(violations, unmet)
		} else {
			warnings = append(warnings, unmet.Message)
		}
	}
	return violations, warnings
}
