// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// permissionHolder is an account and what it may do once the bundle is installed.
type permissionHolder struct {
	Account string       `json:"account"` // "ServiceAccount ns/name", "Group x", "User x"
	Scopes  []permission `json:"scopes"`
}

// permission is what may be done in one namespace, or in all.
type permission struct {
	Namespace string           `json:"namespace"` // empty: in all, and on what is in none
	Rules     []permissionRule `json:"rules"`
}

// permissionRule is a rule in words.
type permissionRule struct {
	Resources string `json:"resources"`
	Verbs     string `json:"verbs"`
	Danger    string `json:"danger,omitempty"` // why to think twice
}

// roleKey names a role among the objects of a bundle.
type roleKey struct{ kind, namespace, name string }

// permissionsOf returns what the bindings of a bundle give, sorted by account and namespace.
func permissionsOf(objects []*unstructured.Unstructured) []permissionHolder {
	roles := map[roleKey][]rbac.PolicyRule{}
	for _, o := range objects {
		var role rbac.ClusterRole // a Role has the same rules
		if kind := o.GetKind(); (kind == "Role" || kind == "ClusterRole") && o.GroupVersionKind().Group == rbac.GroupName &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role) == nil {
			roles[roleKey{kind, o.GetNamespace(), o.GetName()}] = role.Rules
		}
	}
	granted := map[string]map[string][]permissionRule{}
	for _, o := range objects {
		var binding rbac.ClusterRoleBinding // a RoleBinding has the same fields
		if kind := o.GetKind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" ||
			o.GroupVersionKind().Group != rbac.GroupName || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding) != nil {
			continue
		}
		rules := rulesOf(binding.RoleRef, o.GetNamespace(), roles)
		for _, s := range binding.Subjects {
			account := accountText(s)
			if granted[account] == nil {
				granted[account] = map[string][]permissionRule{}
			}
			granted[account][o.GetNamespace()] = append(granted[account][o.GetNamespace()], rules...)
		}
	}
	return holders(granted)
}

// rulesOf says what a role gives in a namespace; empty: in all.
func rulesOf(ref rbac.RoleRef, namespace string, roles map[roleKey][]rbac.PolicyRule) []permissionRule {
	key := roleKey{kind: ref.Kind, name: ref.Name}
	if ref.Kind == "Role" {
		key.namespace = namespace
	}
	rules, known := roles[key]
	if !known {
		danger := ""
		if ref.Name == "cluster-admin" {
			danger = "may do everything"
		}
		return []permissionRule{{Resources: "what the " + ref.Kind + " " + ref.Name + " of the cluster gives", Verbs: "?", Danger: danger}}
	}
	texts := make([]permissionRule, 0, len(rules))
	for _, r := range rules {
		texts = append(texts, ruleText(r, namespace == ""))
	}
	return texts
}

func accountText(s rbac.Subject) string {
	if s.Kind == rbac.ServiceAccountKind {
		return s.Kind + " " + s.Namespace + "/" + s.Name
	}
	return s.Kind + " " + s.Name
}

// holders sorts what is granted, without repetitions.
func holders(granted map[string]map[string][]permissionRule) []permissionHolder {
	found := []permissionHolder{}
	for account, scopes := range granted {
		holder := permissionHolder{Account: account}
		for namespace, rules := range scopes {
			slices.SortFunc(rules, func(a, b permissionRule) int {
				return strings.Compare(a.Resources+"\x00"+a.Verbs, b.Resources+"\x00"+b.Verbs)
			})
			holder.Scopes = append(holder.Scopes, permission{Namespace: namespace, Rules: slices.Compact(rules)})
		}
		slices.SortFunc(holder.Scopes, func(a, b permission) int { return strings.Compare(a.Namespace, b.Namespace) })
		found = append(found, holder)
	}
	slices.SortFunc(found, func(a, b permissionHolder) int { return strings.Compare(a.Account, b.Account) })
	return found
}

// ruleText says a rule in words; everywhere says that it holds in all namespaces.
func ruleText(r rbac.PolicyRule, everywhere bool) permissionRule {
	resources := strings.Join(r.NonResourceURLs, ", ")
	if len(r.Resources) > 0 {
		resources = resourcesText(r.APIGroups, r.Resources)
	}
	if len(r.ResourceNames) > 0 {
		resources += " named " + strings.Join(r.ResourceNames, ", ")
	}
	return permissionRule{Resources: resources, Verbs: strings.Join(r.Verbs, ", "), Danger: dangerOf(r, everywhere)}
}

// resourcesText names resources with their groups: "deployments in apps".
func resourcesText(groups, resources []string) string {
	names := make([]string, 0, len(groups))
	for _, g := range groups {
		switch g {
		case "":
			names = append(names, "core")
		case "*":
			names = append(names, "all groups")
		default:
			names = append(names, g)
		}
	}
	if slices.Contains(resources, "*") {
		return "all resources in " + strings.Join(names, ", ")
	}
	return strings.Join(resources, ", ") + " in " + strings.Join(names, ", ")
}
