// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/convert"
)

// Requirements translates the requirements of a bundle from conversion to planning, which do not import
// each other.
func Requirements(of []convert.Requirement) []requirement.Requirement {
	if len(of) == 0 {
		return nil
	}
	all := make([]requirement.Requirement, 0, len(of))
	for _, r := range of {
		all = append(all, requirement.Requirement{
			Kind: requirement.Kind(r.Kind), Name: r.Name, GVK: r.GVK, Versions: r.Versions, Message: r.Message, Of: Requirements(r.Of),
		})
	}
	return all
}

// Needs are the kinds and packages that keep a plan from being executed, and that packages of catalogs may provide. Unmet requirements
// that are only a warning are left out.
func Needs(of plan.Input) []requirement.Need {
	var needs []requirement.Need
	for _, missing := range of.Missing {
		if len(missing.Served) == 0 { // else the kind is there in another version
			needs = append(needs, requirement.Need{Kind: missing.GroupKind().WithVersion(missing.Version)})
		}
	}
	if of.RequirementsPolicy == plan.Enforce {
		needs = append(needs, of.Facts.Lacking(of.Requirements)...)
	}
	return requirement.Distinct(needs)
}
