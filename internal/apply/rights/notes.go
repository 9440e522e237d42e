// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// Notes are what somebody who grants the rights should know beforehand, in the
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
		if plan.IsNamespace(object.ID) {
			notes = append(notes, object.ID.String()+" "+r.namespaceNote(object.Name))
		}
	}
	return notes
}

func (r Request) namespaceNote(name string) string {
	if r.exists(name) {
		return fmt.Sprintf("is there before the bundle, so that the deployment refuses to take it for its own: leave it out of the bundle, "+
			"or mark it with the annotation %s to have it taken over", inventory.AnnotationOrphaned)
	}
	note := "goes with the bundle only when it is empty and the account may list all that could be in it, which is not among these rights; else it stays"
	if slices.ContainsFunc(r.Objects, func(o plan.Object) bool { return o.Namespace == name }) {
		note += "; as no Role can be in it before, what the account needs there is asked for in the whole cluster: " +
			"leave it out of the bundle, and it is created first and the rights are in it alone"
	}
	return note
}

func (d Demand) note() string {
	switch {
	case d.Unknown && d.Object == d.Role:
		return "gathers the rules of other roles, so that the account needs the verb escalate on it: with that it can give itself any right"
	case d.Unknown:
		return fmt.Sprintf("hands out %s, which the bundle does not contain: the account needs the verb bind on it, and can hand it out to anybody", d.Role)
	case d.Object == d.Role && slices.ContainsFunc(d.Rights, Right.unbounded):
		return "grants what gives whoever holds it any right; so does the account hold it"
	}
	return ""
}

// unbounded tells whether a right is as good as all of them.
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
