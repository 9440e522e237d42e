// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
)

// danger is a right by which its holder can get at more than the rule says.
type danger struct {
	group     string
	resources []string
	verbs     []string
	why       string
	// everywhere says that it only counts in all namespaces, named that names of objects take the danger away.
	everywhere, named bool
}

var dangers = []danger{
	{group: rbac.GroupName, resources: []string{"roles", "clusterroles"}, verbs: []string{"escalate", "bind"}, why: "may give itself any right"},
	{resources: []string{"users", "groups", "serviceaccounts"}, verbs: []string{"impersonate"}, why: "may act as others"},
	{resources: []string{"serviceaccounts/token"}, verbs: []string{"create"}, why: "may act as any ServiceAccount", named: true},
	{resources: []string{"secrets"}, verbs: []string{"get", "list", "watch"}, why: "reads the Secrets of all namespaces", everywhere: true, named: true},
	{resources: []string{"pods/exec", "pods/attach"}, verbs: []string{"create", "get"}, why: "may run commands in Pods", named: true},
	{resources: []string{"nodes/proxy"}, verbs: []string{"get", "create"}, why: "reaches all Pods through their nodes", everywhere: true},
	{group: "admissionregistration.k8s.io", resources: []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"},
		verbs: []string{"create", "update", "patch"}, why: "may intercept what others write", named: true},
	{group: "certificates.k8s.io", resources: []string{"certificatesigningrequests/approval"}, verbs: []string{"update", "patch"}, why: "may issue itself certificates", named: true},
}

// dangerOf says why to think twice about a rule; empty: nothing special.
func dangerOf(r rbac.PolicyRule, everywhere bool) string {
	all := func(words []string) bool { return slices.Contains(words, rbac.ResourceAll) }
	if all(r.APIGroups) && all(r.Resources) && all(r.Verbs) {
		return "may do everything"
	}
	var reasons []string
	for _, d := range dangers {
		if d.in(r, everywhere) {
			reasons = append(reasons, d.why)
		}
	}
	switch {
	case len(reasons) > 0:
	case all(r.APIGroups), all(r.Resources):
		reasons = append(reasons, "names resources that do not exist yet")
	case all(r.Verbs):
		reasons = append(reasons, "has all verbs")
	}
	return strings.Join(reasons, "; ")
}

func (d danger) in(r rbac.PolicyRule, everywhere bool) bool {
	if d.everywhere && !everywhere || d.named && len(r.ResourceNames) > 0 {
		return false
	}
	return covers(r.APIGroups, d.group) && slices.ContainsFunc(d.resources, func(resource string) bool {
		_, sub, isSub := strings.Cut(resource, "/")
		return covers(r.Resources, resource) || isSub && slices.Contains(r.Resources, "*/"+sub)
	}) && slices.ContainsFunc(d.verbs, func(verb string) bool { return covers(r.Verbs, verb) })
}

func covers(words []string, word string) bool {
	return slices.Contains(words, word) || slices.Contains(words, rbac.ResourceAll)
}
