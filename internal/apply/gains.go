// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// withoutGains leaves out of the missing needs those that the plan itself may bring:
// a binding that is about to be written, and that nothing forbids to write, grants
// the account something, and the object comes after it. Only an account that may
// `bind` gains by that; what it gains need not be known beforehand. What comes no
// later than the binding needs its right before.
func withoutGains(p plan.Plan, id tenant.Identity, missing rights.Missing) []rights.Need {
	refused := map[inventory.ID]bool{}
	for _, demand := range missing.Demands {
		refused[demand.Object] = true
	}
	stageOf, gained := map[inventory.ID]int{}, map[string]int{} // by namespace: the first stage after
	for i, stage := range p.Stages {
		for _, action := range stage.Actions {
			stageOf[action.ID] = i
			if _, found := gained[action.Namespace]; !found && !refused[action.ID] && action.Writes() && binds(action, id) {
				gained[action.Namespace] = i + 1
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(missing.Needs), func(need rights.Need) bool {
		at, planned := stageOf[need.Object]
		return planned && (after(gained, "", at) || after(gained, need.Place(), at))
	})
}

func after(gained map[string]int, namespace string, stage int) bool {
	from, found := gained[namespace]
	return found && stage >= from
}

// binds tells whether an object is a binding that grants something to the account.
func binds(action plan.Action, id tenant.Identity) bool {
	if !plan.IsAccess(action.ID) {
		return false
	}
	subjects, _ := action.Desired.Object["subjects"].([]any)
	return slices.ContainsFunc(subjects, func(subject any) bool {
		fields, _ := subject.(map[string]any)
		name, _ := fields["name"].(string)
		namespace, _ := fields["namespace"].(string)
		switch fields["kind"] {
		case rbacv1.ServiceAccountKind:
			return name == id.ServiceAccount && cmp.Or(namespace, action.Namespace) == id.Namespace
		case rbacv1.UserKind:
			return name == id.Username()
		case rbacv1.GroupKind:
			return slices.Contains([]string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + id.Namespace}, name)
		}
		return false
	})
}
