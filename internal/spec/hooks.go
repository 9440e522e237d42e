// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/convert"
)

// Hooks translates the hooks of a conversion to those of a plan.
func Hooks(of convert.Result) []plan.Hook {
	var hooks []plan.Hook
	for _, hook := range of.Hooks {
		hooks = append(hooks, plan.Hook{
			Object:    hook.Object,
			HookTerms: plan.HookTerms{Events: slices.Clone(hook.Events), Weight: hook.Weight, Policies: slices.Clone(hook.DeletePolicies)},
		})
	}
	return hooks
}
