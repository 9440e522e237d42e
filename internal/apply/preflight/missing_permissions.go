// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// missingPermissions describes the missing permissions in at most three violations for each
// namespace, so that all of it fits into a condition: the permissions for the objects, those that
// its roles grant, and those that stand in for unknown rules. Beyond mostNamespacesNamed, one
// violation summarizes the other namespaces.
func missingPermissions(missing rights.Missing, id tenant.Identity) []violation.Violation {
	objects := missingByNamespace{}
	granted := missingByNamespace{}
	instead := missingByNamespace{}
	for _, need := range missing.Needs {
		objects.add(need.Namespace, missingFor{object: need.Object, rights: []rights.Right{need.Right}})
	}
	roleReported := map[inventory.ID]bool{}
	for _, demand := range missing.Demands {
		roleReported[demand.Role] = roleReported[demand.Role] || demand.Object == demand.Role
	}
	for _, demand := range missing.Demands {
		switch {
		case demand.Unknown || !plan.IsAccess(demand.Object):
			instead.add(demand.Namespace, missingFor{object: demand.Object, named: true, rights: []rights.Right{demand.Instead}})
		case demand.Object == demand.Role || !roleReported[demand.Role]: // a binding lacks the permissions that its role lacks
			granted.add(demand.Namespace, missingFor{object: demand.Object, named: true, role: demand.Role, rights: demand.Rights})
		}
	}
	return slices.Concat(
		objects.violations("the ServiceAccount cannot", "grant this", id),
		granted.violations("the ServiceAccount cannot grant what it does not hold", "grant this, or to escalate the roles and to bind them,", id),
		instead.violations("the ServiceAccount may not grant permissions that it cannot be shown to hold", "grant this", id),
	)
}

// missingFor lists the permissions that are missing for an object.
type missingFor struct {
	object inventory.ID
	named  bool         // the message names the object
	role   inventory.ID // the role that grants the permissions; zero for other permissions
	rights []rights.Right
}

// missingByNamespace lists the missing permissions by namespace; "" is the cluster.
type missingByNamespace map[string][]missingFor

func (l missingByNamespace) add(namespace string, missing missingFor) {
	l[namespace] = append(l[namespace], missing)
}

// mostNamespacesNamed is in how many namespaces the missing permissions are named: a condition
// has no room for more.
const mostNamespacesNamed = 50

func (l missingByNamespace) violations(what, remedy string, id tenant.Identity) []violation.Violation {
	var found []violation.Violation
	add := func(place, where, words, by string) {
		found = append(found, violation.Violation{
			Rule: violation.PermissionMissing, Object: l[place][0].object,
			Message: fmt.Sprintf("%s, in %s: %s", what, where, words),
			Remedy:  fmt.Sprintf("%s to service account %q by %s", remedy, id, by),
		})
	}
	places := slices.Sorted(maps.Keys(l))
	for _, place := range places[:min(len(places), mostNamespacesNamed)] {
		where := "the cluster"
		by := "a ClusterRole and a ClusterRoleBinding"
		if place != "" {
			where = fmt.Sprintf("namespace %q", place)
			by = "a Role and a RoleBinding there"
		}
		add(place, where, words(l[place]), by)
	}
	if len(places) > mostNamespacesNamed {
		rest := places[mostNamespacesNamed:]
		add(rest[0], namespaces(rest)+" besides", "what satchel rbac prints", "Roles and RoleBindings there, or a ClusterRole and a ClusterRoleBinding")
	}
	return found
}

// words describes the missing permissions at one place. All bindings of a role lack the same
// permissions, so that only those that can be named are read.
func words(list []missingFor) string {
	var all []rights.Right
	by := map[rights.Right][]string{}
	bindings := map[inventory.ID]int{}
	granted := 0
	for _, missing := range list {
		if missing.role.Name != "" {
			if bindings[missing.role]++; bindings[missing.role] > rights.MostWho+1 {
				continue
			}
			granted = max(granted, len(missing.rights))
		}
		all = append(all, missing.rights...)
		for _, right := range missing.rights {
			if missing.named {
				by[right] = append(by[right], short(missing.object))
			}
		}
	}
	text := bounded(rights.Words(all, by))
	if granted >= rights.MostMissing {
		text += "; and more, which satchel rbac prints"
	}
	return text
}

// short is the name of an object of a known group.
func short(id inventory.ID) string {
	id.Group = ""
	return id.String()
}

// bounded joins as many words as a condition has room for.
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
