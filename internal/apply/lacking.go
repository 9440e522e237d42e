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
// grant, and those that stand in for what nobody can know.
func lacking(missing rights.Missing, id tenant.Identity) []plan.Violation {
	objects, granted, instead := lists{}, lists{}, lists{}
	for _, need := range missing.Needs {
		objects.at(need.Namespace).add(need.Object, "", need.Right)
	}
	said := map[inventory.ID]bool{}
	for _, demand := range missing.Demands {
		said[demand.Role] = said[demand.Role] || demand.Object == demand.Role
	}
	for _, demand := range missing.Demands {
		switch {
		case demand.Unknown || !plan.IsAccess(demand.Object):
			instead.at(demand.Namespace).add(demand.Object, short(demand.Object), demand.Instead)
		case demand.Object == demand.Role || !said[demand.Role]: // a binding lacks what its role lacks
			granted.at(demand.Namespace).add(demand.Object, short(demand.Object), demand.Rights...)
		}
	}
	return slices.Concat(
		objects.violations("the account cannot", "grant this", id),
		granted.violations("the account cannot grant what it does not hold", "grant this, or to escalate the roles and to bind them,", id),
		instead.violations("the account may not hand out what it does not show to hold", "grant this", id),
	)
}

// list is rights that are missing at one place.
type list struct {
	first  inventory.ID
	rights []rights.Right
	by     map[rights.Right][]string
}

func (l *list) add(object inventory.ID, by string, of ...rights.Right) {
	if len(l.rights) == 0 {
		l.first = object
	}
	l.rights = append(l.rights, of...)
	if by == "" {
		return
	}
	for _, right := range of {
		l.by[right] = append(l.by[right], by)
	}
}

// lists are by namespace; "" is the cluster.
type lists map[string]*list

func (l lists) at(namespace string) *list {
	if l[namespace] == nil {
		l[namespace] = &list{by: map[rights.Right][]string{}}
	}
	return l[namespace]
}

func (l lists) violations(what, remedy string, id tenant.Identity) []plan.Violation {
	var found []plan.Violation
	for _, namespace := range slices.Sorted(maps.Keys(l)) {
		where, by := "in the cluster", "a ClusterRole and a ClusterRoleBinding"
		if namespace != "" {
			where, by = fmt.Sprintf("in namespace %q", namespace), "a Role and a RoleBinding there"
		}
		found = append(found, plan.Violation{
			Rule: plan.PermissionMissing, Object: l[namespace].first,
			Message: fmt.Sprintf("%s, %s: %s", what, where, bounded(rights.Words(l[namespace].rights, l[namespace].by))),
			Remedy:  fmt.Sprintf("%s to service account %q by %s", remedy, id, by),
		})
	}
	return found
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
