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

// lacking words what is missing: one violation a namespace for the objects, and one
// for each role that grants what the account does not hold.
func lacking(missing rights.Missing, id tenant.Identity) []plan.Violation {
	byPlace := map[string][]rights.Right{}
	first := map[string]inventory.ID{}
	for _, need := range missing.Needs {
		if _, found := first[need.Namespace]; !found {
			first[need.Namespace] = need.Object
		}
		byPlace[need.Namespace] = append(byPlace[need.Namespace], need.Right)
	}
	var found []plan.Violation
	for _, namespace := range slices.Sorted(maps.Keys(byPlace)) {
		found = append(found, plan.Violation{
			Rule: plan.PermissionMissing, Object: first[namespace],
			Message: fmt.Sprintf("the account cannot, %s: %s", where(namespace), bounded(rights.Words(byPlace[namespace]))),
			Remedy:  fmt.Sprintf("grant this to service account %q by %s", id, by(namespace)),
		})
	}
	said := map[inventory.ID]bool{}
	for _, demand := range missing.Demands {
		if demand.Object == demand.Role {
			said[demand.Role] = true
		}
	}
	for _, demand := range missing.Demands {
		if demand.Object == demand.Role || !said[demand.Role] { // a binding lacks what its role lacks
			found = append(found, ungranted(demand, id))
		}
	}
	return found
}

// ungranted words that the account may not write what grants rights.
func ungranted(demand rights.Demand, id tenant.Identity) plan.Violation {
	instead := bounded(rights.Words([]rights.Right{demand.Instead}))
	v := plan.Violation{
		Rule: plan.PermissionMissing, Object: demand.Object,
		Message: fmt.Sprintf("the account does not hold, %s, what %s grants: %s", where(demand.Namespace), demand.Role, bounded(rights.Words(demand.Rights))),
		Remedy:  fmt.Sprintf("grant this, or to %s, to service account %q by %s", instead, id, by(demand.Namespace)),
	}
	switch {
	case demand.Unknown && demand.Object == demand.Role:
		v.Message = fmt.Sprintf("the account may not write %s, which gathers the rules of other roles", demand.Object)
	case demand.Unknown:
		v.Message = fmt.Sprintf("the account may not hand out %s by %s", demand.Role, demand.Object)
	case !plan.IsAccess(demand.Object):
		v.Message = fmt.Sprintf("the account cannot, %s, read the parameters of %s: %s", where(demand.Namespace), demand.Object, instead)
	}
	if demand.Unknown || !plan.IsAccess(demand.Object) {
		v.Remedy = fmt.Sprintf("grant to %s to service account %q by %s", instead, id, by(demand.Namespace))
	}
	return v
}

func where(namespace string) string {
	if namespace == "" {
		return "in the cluster"
	}
	return fmt.Sprintf("in namespace %q", namespace)
}

func by(namespace string) string {
	if namespace == "" {
		return "a ClusterRole and a ClusterRoleBinding"
	}
	return "a Role and a RoleBinding there"
}

// bounded joins words, up to what a reader would read.
func bounded(words []string) string {
	const enough = 2000
	text := ""
	for i, word := range words {
		if len(text)+len(word) > enough && i > 0 {
			return fmt.Sprintf("%s; and %d more", text, len(words)-i)
		}
		text += strings.Repeat("; ", min(i, 1)) + word
	}
	return text
}
