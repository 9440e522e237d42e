// SPDX-License-Identifier: Apache-2.0

package spec

import (
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
