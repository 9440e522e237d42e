// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	rbac "k8s.io/api/rbac/v1"
)

// danger is a permission that can be used to gain further permissions.
type danger struct {
	group     string
	resources []string
	verbs     []string
	why       string
	// everywhere: it only counts in all namespaces; named: it does not count for rules with resourceNames.
	everywhere, named bool
}

// change are the verbs that write an object.
var change = []string{"create", "update", "patch"}

var dangers = []danger{
	{group: rbac.GroupName, resources: []string{"roles", "clusterroles"}, verbs: []string{"escalate", "bind"}, why: "may grant itself any permission"},
	{resources: []string{"users", "groups", "serviceaccounts"}, verbs: []string{impersonate}, why: actsAsOthers},
	{resources: []string{"serviceaccounts/token"}, verbs: []string{"create"}, why: "may authenticate as any ServiceAccount", named: true},
	{resources: []string{"secrets"}, verbs: []string{"get", "list", "watch"}, why: "reads the Secrets of all namespaces", everywhere: true, named: true},
	{resources: []string{"pods/exec", "pods/attach"}, verbs: []string{"create", "get"}, why: "may run commands in Pods", named: true},
	{resources: []string{"pods/ephemeralcontainers"}, verbs: []string{"update", "patch"}, why: "may run commands in Pods", named: true},
	{resources: []string{"nodes/proxy"}, verbs: []string{"get", "create"}, why: "reaches all Pods through their nodes", everywhere: true},
	{group: admission.GroupName, resources: []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "mutatingadmissionpolicies"},
		verbs: change, why: "may intercept what others write", named: true},
	{group: "apiregistration.k8s.io", resources: []string{"apiservices"}, verbs: change, why: "may serve in place of other APIs", named: true},
	{group: "certificates.k8s.io", resources: []string{"certificatesigningrequests/approval"}, verbs: []string{"update", "patch"}, why: "may issue itself certificates", named: true},
}

// Rank orders rules: what to look at first is greater.
type Rank int

// The ranks, in order.
const (
	Harmless   Rank = iota
	Unknown         // only a cluster knows
	wide            // wildcards
	Dangerous       // a danger of the table
	Everything      // all of them
)

// What the worst rules amount to.
const (
	DoesEverything = "may do everything"
	actsAsOthers   = "may impersonate other users"
	impersonate    = "impersonate"
)

// DangerOf says why a rule is dangerous; empty: it is not.
func DangerOf(r rbac.PolicyRule, everywhere bool) (string, Rank) {
	all := func(words []string) bool { return slices.Contains(words, rbac.ResourceAll) }
	if all(r.APIGroups) && all(r.Resources) && all(r.Verbs) && !OnlyNamed(r) {
		return DoesEverything, Everything
	}
	var reasons []string
	// There are several such verbs, for example impersonate:user-info, and the list of their resources is open.
	if slices.ContainsFunc(r.Verbs, func(verb string) bool { return strings.HasPrefix(verb, impersonate) }) {
		reasons = append(reasons, actsAsOthers)
	}
	for _, d := range dangers {
		if d.in(r, everywhere) && !slices.Contains(reasons, d.why) {
			reasons = append(reasons, d.why)
		}
	}
	switch {
	case len(reasons) > 0:
		return strings.Join(reasons, "; "), Dangerous
	case all(r.APIGroups), all(r.Resources):
		return "names resources that do not exist yet", wide
	case all(r.Verbs):
		return "has all verbs", wide
	}
	return "", Harmless
}

func (d danger) in(r rbac.PolicyRule, everywhere bool) bool {
	if d.everywhere && !everywhere || d.named && OnlyNamed(r) {
		return false
	}
	return covers(r.APIGroups, d.group) && slices.ContainsFunc(d.resources, func(resource string) bool {
		_, sub, isSub := strings.Cut(resource, "/")
		return covers(r.Resources, resource) || isSub && slices.Contains(r.Resources, "*/"+sub)
	}) && slices.ContainsFunc(d.verbs, func(verb string) bool { return covers(r.Verbs, verb) })
}

// OnlyNamed tells whether a rule is about some objects only. The empty name is that of requests that name none, such as list
// and create.
func OnlyNamed(r rbac.PolicyRule) bool {
	return len(r.ResourceNames) > 0 && !slices.Contains(r.ResourceNames, "")
}

func covers(words []string, word string) bool {
	return slices.Contains(words, word) || slices.Contains(words, rbac.ResourceAll)
}

// DangerOfRole says why a role is dangerous that the bundle refers to and does not contain.
func DangerOfRole(kind, name string) (string, Rank) {
	switch {
	case kind == "ClusterRole" && name == "cluster-admin":
		return DoesEverything, Everything
	case kind == "ClusterRole" && (name == "admin" || name == "edit"):
		return "reads Secrets; may run commands in Pods", Dangerous
	}
	return "", Unknown
}

// DangerOfWebhook says why the rules of a webhook are dangerous.
func DangerOfWebhook(rules []admission.RuleWithOperations) string {
	for _, r := range rules {
		switch {
		case covers(r.APIGroups, rbac.ResourceAll) && (covers(r.Resources, rbac.ResourceAll) || slices.Contains(r.Resources, "*/*")):
			return "intercepts everything"
		case covers(r.APIGroups, "") && (covers(r.Resources, "secrets") || slices.Contains(r.Resources, "*/*")):
			return "is shown Secrets"
		}
	}
	return ""
}
