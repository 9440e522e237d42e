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
	role  inventory.ID
	from  int
	rules *rights.Rules
}

// gains are by namespace; "" is the cluster.
type gains map[string][]gain

// mostGains is of how many roles at a place it is looked up what they bring: whoever
// binds the account to more is taken to bring it anything.
const mostGains = 10

// withoutGains leaves out of the missing needs those that the plan itself may bring:
// a binding that is about to be written, and that nothing forbids to write, grants
// the account something, and the object comes after it. Only an account that may
// `bind` gains by that. What it gains is known where the plan writes the role, too.
// What comes no later than the binding needs its right before.
func withoutGains(p plan.Plan, id tenant.Identity, missing rights.Missing, demands []rights.Demand) []rights.Need {
	refused, demanded := map[inventory.ID]bool{}, map[inventory.ID]rights.Demand{}
	for _, demand := range missing.Demands {
		refused[demand.Object] = true
	}
	for _, demand := range demands {
		demanded[demand.Object] = demand
	}
	stageOf, gained, rulesOf := map[inventory.ID]int{}, gains{}, map[inventory.ID]*rights.Rules{}
	for i, stage := range p.Stages {
		for _, action := range stage.Actions {
			stageOf[action.ID] = i
			if refused[action.ID] || !action.Writes() || !binds(action, id) {
				continue
			}
			of, found := demanded[action.ID]
			if found && !of.Unknown && rulesOf[of.Role] == nil {
				rulesOf[of.Role] = rulesFor(of.Rights)
			}
			gained.add(action.Namespace, gain{role: of.Role, from: i + 1, rules: rulesOf[of.Role]})
		}
	}
	if len(gained) == 0 {
		return missing.Needs
	}
	return slices.DeleteFunc(slices.Clone(missing.Needs), func(need rights.Need) bool {
		at, planned := stageOf[need.Object]
		return planned && (gained.bring("", at, need.Right) || gained.bring(need.Place(), at, need.Right))
	})
}

// add takes a role once a place, from the first stage on, and one that may bring
// anything for all that are too many.
func (g gains) add(place string, brought gain) {
	known := func(of gain) bool {
		return slices.ContainsFunc(g[place], func(other gain) bool { return other.role == of.role })
	}
	if known(brought) {
		return
	}
	if len(g[place]) >= mostGains {
		brought.role, brought.rules = inventory.ID{}, nil
	}
	if !known(brought) {
		g[place] = append(g[place], brought)
	}
}

// bring tells whether what is gained at a place may bring a right to an object of a stage.
func (g gains) bring(place string, stage int, right rights.Right) bool {
	return slices.ContainsFunc(g[place], func(of gain) bool {
		return stage >= of.from && (of.rules == nil || of.rules.Cover(right))
	})
}

// rulesFor writes single rights to objects as rules.
func rulesFor(list []rights.Right) *rights.Rules {
	rules := make([]rbacv1.PolicyRule, 0, len(list))
	for _, right := range list {
		if right.URL != "" {
			continue
		}
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
		if id.ServiceAccount == "" { // the user of a kubeconfig, whose name and groups are not known here
			return fields["kind"] == rbacv1.GroupKind && name == "system:authenticated"
		}
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
