// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// lacking words what is missing, at most three violations a namespace, so that all
// of it fits into a condition: the rights to the objects, those that its roles
// grant, and those that stand in for what nobody can know. Of many namespaces the
// first are worded.
func lacking(missing rights.Missing, id tenant.Identity) []plan.Violation {
	objects, granted, instead := lists{}, lists{}, lists{}
	for _, need := range missing.Needs {
		objects.add(need.Namespace, want{object: need.Object, rights: []rights.Right{need.Right}})
	}
	said := map[inventory.ID]bool{}
	for _, demand := range missing.Demands {
		said[demand.Role] = said[demand.Role] || demand.Object == demand.Role
	}
	for _, demand := range missing.Demands {
		switch {
		case demand.Unknown || !plan.IsAccess(demand.Object):
			instead.add(demand.Namespace, want{object: demand.Object, by: true, rights: []rights.Right{demand.Instead}})
		case demand.Object == demand.Role || !said[demand.Role]: // a binding lacks what its role lacks
			granted.add(demand.Namespace, want{object: demand.Object, by: true, role: demand.Role, rights: demand.Rights})
		}
	}
	return slices.Concat(
		objects.violations("the account cannot", "grant this", id),
		granted.violations("the account cannot grant what it does not hold", "grant this, or to escalate the roles and to bind them,", id),
		instead.violations("the account may not hand out what it does not show to hold", "grant this", id),
	)
}

// want is rights that are missing for an object.
type want struct {
	object inventory.ID
	by     bool         // it is said for which
	role   inventory.ID // that grants them; zero for other rights
	rights []rights.Right
}

// lists are what is missing by namespace; "" is the cluster.
type lists map[string][]want

func (l lists) add(namespace string, of want) { l[namespace] = append(l[namespace], of) }

// mostWorded is in how many namespaces it is said what is missing: a condition has
// no room for more.
const mostWorded = 50

func (l lists) violations(what, remedy string, id tenant.Identity) []plan.Violation {
	var found []plan.Violation
	add := func(place, where, words, by string) {
		found = append(found, plan.Violation{
			Rule: plan.PermissionMissing, Object: l[place][0].object,
			Message: fmt.Sprintf("%s, in %s: %s", what, where, words),
			Remedy:  fmt.Sprintf("%s to service account %q by %s", remedy, id, by),
		})
	}
	places := slices.Sorted(maps.Keys(l))
	for _, place := range places[:min(len(places), mostWorded)] {
		where, by := "the cluster", "a ClusterRole and a ClusterRoleBinding"
		if place != "" {
			where, by = fmt.Sprintf("namespace %q", place), "a Role and a RoleBinding there"
		}
		add(place, where, words(l[place]), by)
	}
	if len(places) > mostWorded {
		rest := places[mostWorded:]
		add(rest[0], namespaces(rest)+" besides", "what satchel rbac prints", "Roles and RoleBindings there, or a ClusterRole and a ClusterRoleBinding")
	}
	return found
}

// words say what is wanted at one place. Of many bindings of a role, which lack the
// same, more than are named make no difference.
func words(wants []want) string {
	var all []rights.Right
	by, bindings, granted := map[rights.Right][]string{}, map[inventory.ID]int{}, 0
	for _, of := range wants {
		if of.role.Name != "" {
			if bindings[of.role]++; bindings[of.role] > rights.MostWho+1 {
				continue
			}
			granted = max(granted, len(of.rights))
		}
		all = append(all, of.rights...)
		for _, right := range of.rights {
			if of.by {
				by[right] = append(by[right], short(of.object))
			}
		}
	}
	text := bounded(rights.Words(all, by))
	if granted >= rights.MostLacking {
		text += "; and more, which satchel rbac prints"
	}
	return text
}

// short is the name of an object of a known group.
func short(id inventory.ID) string {
	id.Group = ""
	return id.String()
}

// bounded joins words, as many as a condition has room for.
func bounded(words []string) string {
	const enough = 5000
	text := ""
	for i, word := range words {
		if i > 0 && len(text)+len(word) > enough {
			return fmt.Sprintf("%s; and %d more, which satchel rbac prints", text, len(words)-i)
		}
		text += strings.Repeat("; ", min(i, 1)) + word
	}
	return text
}
