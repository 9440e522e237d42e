// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// generatedLength is how long the hash in the name of a role of an operator is at least. The hash is of the rules, so that
// the next version of the operator has the same one behind another name, and no others bound anything to that name before.
const generatedLength = 40

// generated is the hash in the name of an object of RBAC, with its kind and namespace; false without one.
func generated(kind, namespace, name string) (Subject, bool) {
	hash := name[strings.LastIndexByte(name, '-')+1:]
	return Subject{Kind: kind, Namespace: namespace, Name: hash}, len(hash) >= generatedLength && len(hash) < len(name)
}

// WithoutRenamed are the objects that leave without another one in their place: roles and bindings of an operator get other
// names with each version.
func WithoutRenamed(leaving, staying []inventory.ID) []inventory.ID {
	successors := map[Subject]bool{}
	for _, id := range staying {
		if hash, found := generated(id.Kind, id.Namespace, id.Name); found && id.Group == rbacv1.GroupName {
			successors[hash] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(leaving), func(id inventory.ID) bool {
		hash, found := generated(id.Kind, id.Namespace, id.Name)
		return found && id.Group == rbacv1.GroupName && successors[hash]
	})
}

// formerNames are the roles of a side by the hashes in their names.
func formerNames(was access) map[Subject][]Subject {
	names := map[Subject][]Subject{}
	for id := range was.roles {
		if hash, found := generated(id.Kind, id.Namespace, id.Name); found {
			names[hash] = append(names[hash], Subject{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name})
		}
	}
	return names
}

// formerly are the names that a role of the bundle had before.
func (g *permissionDiff) formerly(s Subject) []Subject {
	hash, found := generated(s.Kind, s.Namespace, s.Name)
	if !found || g.rank(s) != last {
		return nil
	}
	return g.former[hash]
}
