// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// Notes are for the administrator who grants the permissions, in the
// order of the objects.
func (r Request) Notes() []string {
	demands, _ := Demands(slices.Concat(r.Objects, r.Hooks)) // Of says what is wrong with them
	var notes []string
	for _, demand := range demands {
		if note := demand.note(); note != "" {
			notes = append(notes, demand.Object.String()+" "+note)
		}
	}
	for _, object := range r.Objects {
		if ownership.IsNamespace(object.ID) {
			notes = append(notes, object.ID.String()+" "+r.namespaceNote(object.Name))
		}
	}
	return notes
}

func (r Request) namespaceNote(name string) string {
	if r.exists(name) {
		return fmt.Sprintf("exists before the bundle, so that the deployment refuses to adopt it: leave it out of the bundle, "+
			"or add the annotation %s to have it adopted", inventory.AnnotationOrphaned)
	}
	note := "is deleted with the bundle only if it is empty and the ServiceAccount may list every kind in it, a permission that is not included here; else it stays"
	if slices.ContainsFunc(r.Objects, func(o plan.Object) bool { return o.Namespace == name }) {
		note += "; as no Role can exist in it before, the ServiceAccount needs its permissions there cluster-wide: " +
			"leave it out of the bundle to have it created first, with permissions in it alone"
	}
	return note
}

func (d Demand) note() string {
	switch {
	case d.Unknown && d.Object == d.Role:
		return "aggregates the rules of other roles, so that the ServiceAccount needs the verb escalate on it: with that it can grant itself any permission"
	case d.Unknown:
		return fmt.Sprintf("binds %s, which the bundle does not contain: the ServiceAccount needs the verb bind on it, and can bind it to any subject", d.Role)
	case d.Object == d.Role && slices.ContainsFunc(d.Rights, Right.unbounded):
		return "grants permissions that lead to all others, so that the ServiceAccount needs to hold them, too"
	}
	return ""
}

// unbounded tells whether a permission leads to all others.
func (r Right) unbounded() bool {
	verb := map[string][]string{
		"escalate": {rbacv1.GroupName, "roles", "clusterroles"}, "bind": {rbacv1.GroupName, "roles", "clusterroles"},
		"impersonate": {"", "users", "groups", "serviceaccounts"},
	}
	for name, of := range verb {
		group, resource := r.Group == of[0] || r.Group == rbacv1.APIGroupAll, slices.Contains(of[1:], r.Resource) || r.Resource == rbacv1.ResourceAll
		if (r.Verb == name || r.Verb == rbacv1.VerbAll) && r.Names() == nil && group && resource {
			return true
		}
	}
	return false
}
