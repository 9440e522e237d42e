// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/internal/view"
)

// PermissionHolder is an RBAC subject and its permissions once the bundle is installed.
type PermissionHolder struct {
	Account string       `json:"account"` // "ServiceAccount ns/name", "Group x", "User x", "holders of the ClusterRole x"
	Scopes  []Permission `json:"scopes"`  // all namespaces first
}

// Permission is the set of rules in one namespace, or in all.
type Permission struct {
	Namespace string           `json:"namespace"` // empty: in all, and on what is in none
	Rules     []PermissionRule `json:"rules"`     // the most dangerous first
}

// PermissionRule is a rule in words.
type PermissionRule struct {
	Resources string `json:"resources"`
	Verbs     string `json:"verbs"`
	Danger    string `json:"danger,omitempty"` // why the rule is dangerous

	rank view.Rank
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
type granted map[string]map[string][]PermissionRule

func (g granted) add(account, namespace string, rules []PermissionRule) {
	if g[account] == nil {
		g[account] = map[string][]PermissionRule{}
	}
	g[account][namespace] = append(g[account][namespace], rules...)
}

// PermissionsOf returns the permissions that the roles and bindings of a bundle grant, the most dangerous first.
func PermissionsOf(objects []*unstructured.Unstructured) []PermissionHolder {
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
			given.add("unknown accounts", o.GetNamespace(), []PermissionRule{unreadable(o.GetKind(), o.GetName())})
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
func unreadable(kind, name string) PermissionRule {
	return PermissionRule{Resources: "what the " + kind + " " + view.Word(name) + " says, which cannot be read", Verbs: "?", rank: view.Unknown}
}

// rulesOf are the rules that a role grants in a namespace; empty: in all.
func rulesOf(ref rbac.RoleRef, namespace string, roles map[roleKey]role) []PermissionRule {
	key := roleKey{kind: ref.Kind, name: ref.Name}
	if ref.Kind == "Role" {
		key.namespace = namespace
	}
	of, known := roles[key]
	switch {
	case !known:
		why, level := view.DangerOfRole(ref.Kind, ref.Name)
		return []PermissionRule{{Resources: "what the " + view.Word(ref.Kind) + " " + view.Word(ref.Name) + " of the cluster gives", Verbs: "?", Danger: why, rank: level}}
	case of.unreadable:
		return []PermissionRule{unreadable(ref.Kind, ref.Name)}
	}
	return of.words(namespace == "")
}

// words are the rules of a role in words; everywhere: they hold in all namespaces.
func (r role) words(everywhere bool) []PermissionRule {
	texts := make([]PermissionRule, 0, len(r.rules)+len(r.aggregates))
	for _, rule := range r.rules {
		texts = append(texts, ruleText(rule, everywhere))
	}
	for _, selector := range r.aggregates {
		labels := metav1.FormatLabelSelector(&selector)
		text := PermissionRule{Resources: "what the ClusterRoles of the cluster give that are labelled " + labels, Verbs: "?",
			Danger: "aggregates rules that other users write", rank: view.Dangerous}
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			text.Resources = "what all ClusterRoles of the cluster give"
			text.Danger = view.DoesEverything
			text.rank = view.Everything
		}
		texts = append(texts, text)
	}
	return texts
}

// holders sorts what is granted, and removes duplicates.
func (g granted) holders() []PermissionHolder {
	found := []PermissionHolder{}
	for account, scopes := range g {
		holder := PermissionHolder{Account: account}
		for namespace, rules := range scopes {
			slices.SortFunc(rules, func(a, b PermissionRule) int {
				return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.Resources, b.Resources), cmp.Compare(a.Verbs, b.Verbs), cmp.Compare(a.Danger, b.Danger))
			})
			holder.Scopes = append(holder.Scopes, Permission{Namespace: namespace, Rules: slices.Compact(rules)})
		}
		slices.SortFunc(holder.Scopes, func(a, b Permission) int {
			return cmp.Or(CompareBool(a.Namespace == "", b.Namespace == ""), cmp.Compare(b.Rank(), a.Rank()), cmp.Compare(a.Namespace, b.Namespace))
		})
		found = append(found, holder)
	}
	slices.SortFunc(found, func(a, b PermissionHolder) int {
		return cmp.Or(cmp.Compare(b.Rank(), a.Rank()), cmp.Compare(a.Account, b.Account))
	})
	return found
}

// CompareBool puts what is true first.
func CompareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Rank is that of the most dangerous rule.
func (p Permission) Rank() view.Rank {
	most := view.Harmless
	for _, r := range p.Rules {
		most = max(most, r.rank)
	}
	return most
}

// Rank is that of the most dangerous permission.
func (h PermissionHolder) Rank() view.Rank {
	most := view.Harmless
	for _, scope := range h.Scopes {
		most = max(most, scope.Rank())
	}
	return most
}
