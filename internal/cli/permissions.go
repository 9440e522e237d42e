// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// permissionHolder is an RBAC subject and its permissions once the bundle is installed.
type permissionHolder struct {
	Account string       `json:"account"` // "ServiceAccount ns/name", "Group x", "User x", "holders of the ClusterRole x"
	Scopes  []permission `json:"scopes"`  // all namespaces first
}

// permission is the set of rules in one namespace, or in all.
type permission struct {
	Namespace string           `json:"namespace"` // empty: in all, and on what is in none
	Rules     []permissionRule `json:"rules"`     // the most dangerous first
}

// permissionRule is a rule in words.
type permissionRule struct {
	Resources string `json:"resources"`
	Verbs     string `json:"verbs"`
	Danger    string `json:"danger,omitempty"` // why the rule is dangerous

	rank rank
}

// role is the rules of a Role or ClusterRole.
type role struct {
	rules      []rbac.PolicyRule
	aggregates []metav1.LabelSelector // it has the rules of the ClusterRoles of the cluster that these select
	unreadable bool
}

// roleKey names a role among the objects of a bundle.
type roleKey struct{ kind, namespace, name string }

// granted are the rules that subjects are granted, by subject and namespace.
type granted map[string]map[string][]permissionRule

func (g granted) add(account, namespace string, rules []permissionRule) {
	if g[account] == nil {
		g[account] = map[string][]permissionRule{}
	}
	g[account][namespace] = append(g[account][namespace], rules...)
}

// permissionsOf returns the permissions that the roles and bindings of a bundle grant, the most dangerous first.
func permissionsOf(objects []*unstructured.Unstructured) []permissionHolder {
	roles, given := map[roleKey]role{}, granted{}
	for _, o := range objects {
		if kind := o.GetKind(); isRBAC(o) && (kind == "Role" || kind == "ClusterRole") {
			read := readRole(o)
			roles[roleKey{kind, o.GetNamespace(), o.GetName()}] = read
			for label, value := range o.GetLabels() {
				if name, found := strings.CutPrefix(label, aggregateTo); found && kind == "ClusterRole" && value == "true" {
					given.add("holders of the ClusterRole "+name, "", read.words(true))
				}
			}
		}
	}
	for _, o := range objects {
		if kind := o.GetKind(); !isRBAC(o) || kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}
		var binding rbac.ClusterRoleBinding // a RoleBinding has the same fields
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding) != nil {
			given.add("unknown accounts", o.GetNamespace(), []permissionRule{unreadable(o.GetKind(), o.GetName())})
			continue
		}
		rules := rulesOf(binding.RoleRef, o.GetNamespace(), roles)
		for _, s := range binding.Subjects {
			given.add(accountText(s), o.GetNamespace(), rules)
		}
	}
	return given.holders()
}

// aggregateTo begins the labels that aggregate a ClusterRole to a default user-facing role.
const aggregateTo = "rbac.authorization.k8s.io/aggregate-to-"

func isRBAC(o *unstructured.Unstructured) bool { return o.GroupVersionKind().Group == rbac.GroupName }

func readRole(o *unstructured.Unstructured) role {
	var read rbac.ClusterRole // a Role has the same rules
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &read) != nil {
		return role{unreadable: true}
	}
	if read.AggregationRule == nil {
		return role{rules: read.Rules}
	}
	return role{rules: read.Rules, aggregates: read.AggregationRule.ClusterRoleSelectors}
}

// unreadable stands for an invalid role, which the API server would refuse as well.
func unreadable(kind, name string) permissionRule {
	return permissionRule{Resources: "what the " + kind + " " + word(name) + " says, which cannot be read", Verbs: "?", rank: unknown}
}

// rulesOf are the rules that a role grants in a namespace; empty: in all.
func rulesOf(ref rbac.RoleRef, namespace string, roles map[roleKey]role) []permissionRule {
	key := roleKey{kind: ref.Kind, name: ref.Name}
	if ref.Kind == "Role" {
		key.namespace = namespace
	}
	of, known := roles[key]
	switch {
	case !known:
		why, level := dangerOfRole(ref.Kind, ref.Name)
		return []permissionRule{{Resources: "what the " + word(ref.Kind) + " " + word(ref.Name) + " of the cluster gives", Verbs: "?", Danger: why, rank: level}}
	case of.unreadable:
		return []permissionRule{unreadable(ref.Kind, ref.Name)}
	}
	return of.words(namespace == "")
}

// words are the rules of a role in words; everywhere: they hold in all namespaces.
func (r role) words(everywhere bool) []permissionRule {
	texts := make([]permissionRule, 0, len(r.rules)+len(r.aggregates))
	for _, rule := range r.rules {
		texts = append(texts, ruleText(rule, everywhere))
	}
	for _, selector := range r.aggregates {
		labels := metav1.FormatLabelSelector(&selector)
		text := permissionRule{Resources: "what the ClusterRoles of the cluster give that are labelled " + labels, Verbs: "?",
			Danger: "aggregates rules that other users write", rank: dangerous}
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			text.Resources, text.Danger, text.rank = "what all ClusterRoles of the cluster give", doesEverything, everything
		}
		texts = append(texts, text)
	}
	return texts
}

// holders sorts what is granted, and removes duplicates.
func (g granted) holders() []permissionHolder {
	found := []permissionHolder{}
	for account, scopes := range g {
		holder := permissionHolder{Account: account}
		for namespace, rules := range scopes {
			slices.SortFunc(rules, func(a, b permissionRule) int {
				return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.Resources, b.Resources), cmp.Compare(a.Verbs, b.Verbs), cmp.Compare(a.Danger, b.Danger))
			})
			holder.Scopes = append(holder.Scopes, permission{Namespace: namespace, Rules: slices.Compact(rules)})
		}
		slices.SortFunc(holder.Scopes, func(a, b permission) int {
			return cmp.Or(compareBool(a.Namespace == "", b.Namespace == ""), cmp.Compare(b.rank(), a.rank()), cmp.Compare(a.Namespace, b.Namespace))
		})
		found = append(found, holder)
	}
	slices.SortFunc(found, func(a, b permissionHolder) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(a.Account, b.Account))
	})
	return found
}

// compareBool puts what is true first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// rank is that of the most dangerous rule.
func (p permission) rank() rank {
	most := harmless
	for _, r := range p.Rules {
		most = max(most, r.rank)
	}
	return most
}

func (h permissionHolder) rank() rank {
	most := harmless
	for _, scope := range h.Scopes {
		most = max(most, scope.rank())
	}
	return most
}
