// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// grantedRole is a role that a binding of the plan grants to the account, and the first stage
// that can use it. Nil rules are unknown: they may contain any permission.
type grantedRole struct {
	role  inventory.ID
	from  int
	rules *rights.Rules
}

// permissionsGrantedByPlan lists the granted roles by namespace; "" is the cluster.
type permissionsGrantedByPlan map[string][]grantedRole

// mostGrantedRoles is how many granted roles at a place are compared: with more of
// them, the account counts as having any permission there.
const mostGrantedRoles = 10

// withoutGrantedByPlan drops the missing needs that the plan itself may satisfy: it writes
// a binding that grants a role to the account, the binding is not refused, and
// the object is in a later stage. Only an account with the permission to `bind` can benefit
// from that. The rules are known if the plan also contains the role.
// Objects in the stage of the binding or before it need their permissions beforehand.
func withoutGrantedByPlan(p plan.Plan, id tenant.Identity, missing rights.Missing, demands []rights.Demand) []rights.Need {
	if len(missing.Needs) == 0 {
		return nil
	}
	refused := map[inventory.ID]bool{}
	for _, demand := range missing.Demands {
		refused[demand.Object] = true
	}
	demanded := map[inventory.ID]rights.Demand{}
	for _, demand := range demands {
		demanded[demand.Object] = demand
	}
	stageOf := map[inventory.ID]int{}
	granted := permissionsGrantedByPlan{}
	rulesOf := map[inventory.ID]*rights.Rules{}
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
			granted.add(action.Namespace, grantedRole{role: of.Role, from: i + 1, rules: rulesOf[of.Role]})
		}
	}
	if len(granted) == 0 {
		return missing.Needs
	}
	return slices.DeleteFunc(slices.Clone(missing.Needs), func(need rights.Need) bool {
		at, planned := stageOf[need.Object]
		return planned && (granted.mayCover("", at, need.Right) || granted.mayCover(need.Place(), at, need.Right))
	})
}

// add adds a role once for each place, at its first stage. Beyond mostGrantedRoles it adds
// a single role with unknown rules.
func (g permissionsGrantedByPlan) add(place string, granted grantedRole) {
	known := func(role inventory.ID) bool {
		return slices.ContainsFunc(g[place], func(other grantedRole) bool { return other.role == role })
	}
	if known(granted.role) {
		return
	}
	if len(g[place]) >= mostGrantedRoles {
		granted.role = inventory.ID{}
		granted.rules = nil
	}
	if !known(granted.role) {
		g[place] = append(g[place], granted)
	}
}

// mayCover tells whether the roles granted at a place may cover a permission in a stage.
func (g permissionsGrantedByPlan) mayCover(place string, stage int, right rights.Right) bool {
	return slices.ContainsFunc(g[place], func(granted grantedRole) bool {
		return stage >= granted.from && (granted.rules == nil || granted.rules.Cover(right))
	})
}

// rulesFor converts single permissions to rules.
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

// binds tells whether an object is a binding that grants a role to the account.
func binds(action plan.Action, id tenant.Identity) bool {
	if !plan.IsAccess(action.ID) {
		return false
	}
	subjects, _ := action.Desired.Object["subjects"].([]any)
	return slices.ContainsFunc(subjects, func(subject any) bool {
		fields, _ := subject.(map[string]any)
		name, _ := fields["name"].(string)
		namespace, _ := fields["namespace"].(string)
		if id.ServiceAccount == "" { // the user of a kubeconfig: the name and groups are not known here
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
