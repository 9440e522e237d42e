// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// sensitive are namespaced kinds that lead to other permissions: a Secret may hold the token of any
// ServiceAccount, and Roles, RoleBindings and ServiceAccounts decide about permissions themselves.
var sensitive = map[schema.GroupResource]bool{
	{Resource: "secrets"}:                               true,
	{Resource: "serviceaccounts"}:                       true,
	{Group: rbacv1.GroupName, Resource: "roles"}:        true,
	{Group: rbacv1.GroupName, Resource: "rolebindings"}: true,
}

// need adds the permission for a need at a place, where it is granted; unless strict, in the form that
// survives another name of the object in the next version.
func (p places) need(place string, need Need, strict bool) {
	right := need.Right
	if !strict {
		right = unnamed(place, right)
	}
	p.at(place).add(right)
}

// unnamed is a permission on an object of a bundle in the form that survives other names. The first
// line that holds decides.
//
//	granted in the whole cluster       by name: objects of all namespaces would be included
//	granted in a namespace of          by name: workloads there have wide permissions
//	Kubernetes, such as kube-system
//	on a sensitive kind                create by kind, all other verbs by name
//	else                               by kind
func unnamed(place string, right Right) Right {
	switch {
	case place == "" || isSystem(place):
		return right
	case sensitive[schema.GroupResource{Group: right.Group, Resource: right.Resource}] && right.Verb != "create":
		return right
	}
	right.Name = ""
	return right
}

// isSystem tells whether a namespace is one of Kubernetes itself.
func isSystem(namespace string) bool { return strings.HasPrefix(namespace, "kube-") }

// reading is a permission on an input.
func reading(verb string, input inventory.ID) Right {
	return Right{Verb: verb, Group: input.Group, Resource: Plural(input.Kind), Name: input.Name}
}
