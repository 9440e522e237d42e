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

// gain is what a binding of the plan brings the account, and the first stage that
// profits. Without rules nobody knows what it is.
type gain struct {
	from  int
	rules *rights.Rules
}

// withoutGains leaves out of the missing needs those that the plan itself may bring:
// a binding that is about to be written, and that nothing forbids to write, grants
// the account something, and the object comes after it. Only an account that may
// `bind` gains by that. What it gains is known where the plan writes the role, too.
// What comes no later than the binding needs its right before.
func withoutGains(p plan.Plan, id tenant.Identity, missing rights.Missing, demands []rights.Demand) []rights.Need {
	refused, known := map[inventory.ID]bool{}, map[inventory.ID]*rights.Rules{}
	for _, demand := range missing.Demands {
		refused[demand.Object] = true
	}
	for _, demand := range demands {
		if !demand.Unknown {
			known[demand.Object] = rulesFor(demand.Rights)
		}
	}
	stageOf, gained := map[inventory.ID]int{}, map[string][]gain{} // by namespace
	for i, stage := range p.Stages {
		for _, action := range stage.Actions {
			stageOf[action.ID] = i
			if !refused[action.ID] && action.Writes() && binds(action, id) {
				gained[action.Namespace] = append(gained[action.Namespace], gain{from: i + 1, rules: known[action.ID]})
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(missing.Needs), func(need rights.Need) bool {
		at, planned := stageOf[need.Object]
		return planned && slices.ContainsFunc(slices.Concat(gained[""], gained[need.Place()]), func(g gain) bool {
			return at >= g.from && (g.rules == nil || g.rules.Cover(need.Right))
		})
	})
}

// rulesFor writes single rights as rules.
func rulesFor(list []rights.Right) *rights.Rules {
	rules := make([]rbacv1.PolicyRule, 0, len(list))
	for _, right := range list {
		rules = append(rules, rbacv1.PolicyRule{
			Verbs: []string{right.Verb}, APIGroups: []string{right.Group}, Resources: []string{right.Resource}, ResourceNames: right.Names(),
		})
	}
	return rights.NewRules(rules)
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
