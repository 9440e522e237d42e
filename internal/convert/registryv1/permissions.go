// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

const rbacGroup = "rbac.authorization.k8s.io"

// namespacesRule is what an operator needs to watch all namespaces with permissions that were meant for one (R6).
var namespacesRule = rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"namespaces"}}

// generatePermissions makes Roles and RoleBindings in each watched namespace (R7), and in the install namespace, where
// operators elect their leader. Where all namespaces are watched there are none.
func generatePermissions(in *input) ([]manifest.Manifest, []manifest.Problem) {
	if in.all() {
		return nil, nil
	}
	namespaces := slices.Clone(in.targets)
	if !slices.Contains(namespaces, in.InstallNamespace) {
		namespaces = append(namespaces, in.InstallNamespace)
	}
	var out []manifest.Manifest
	var problems []manifest.Problem
	for _, namespace := range namespaces {
		for _, p := range in.Permissions() {
			objects, more := in.grant(p, "Role", namespace)
			out, problems = append(out, objects...), append(problems, more...)
		}
	}
	return out, problems
}

// generateClusterPermissions makes ClusterRoles and their bindings (R5), and those of the namespaced permissions where all
// namespaces are watched (R6).
func generateClusterPermissions(in *input) ([]manifest.Manifest, []manifest.Problem) {
	permissions := slices.Clone(in.ClusterPermissions())
	if in.all() {
		for _, p := range in.Permissions() {
			p.Rules = append(slices.Clone(p.Rules), namespacesRule)
			permissions = append(permissions, p)
		}
	}
	var out []manifest.Manifest
	var problems []manifest.Problem
	for _, p := range permissions {
		objects, more := in.grant(p, "ClusterRole", "")
		out, problems = append(out, objects...), append(problems, more...)
	}
	return out, problems
}

// grant makes a role of the given kind and the binding that gives it to the permission's account (R1).
func (in *input) grant(p v1alpha1.StrategyDeploymentPermissions, kind, namespace string) ([]manifest.Manifest, []manifest.Problem) {
	hash, err := permissionHash(p)
	if err != nil {
		return nil, []manifest.Problem{in.Problem("R2", "correct them", "the permissions of %q cannot be written as JSON", bundle.AccountName(p))}
	}
	name := joinName(in.CSV.Name+"-"+bundle.AccountName(p), hash)
	role := in.object(rbacGroup+"/v1", kind, namespace, name, map[string]any{"rules": policyRules(p.Rules)})
	binding := in.object(rbacGroup+"/v1", kind+"Binding", namespace, name, map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": kind, "name": name},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": bundle.AccountName(p), "namespace": in.InstallNamespace}},
	})
	return []manifest.Manifest{role, binding}, nil
}

func policyRules(rules []rbacv1.PolicyRule) []any {
	out := make([]any, 0, len(rules))
	for _, r := range rules {
		rule := map[string]any{"verbs": texts(r.Verbs)}
		for field, values := range map[string][]string{
			"apiGroups": r.APIGroups, "resources": r.Resources, "resourceNames": r.ResourceNames, "nonResourceURLs": r.NonResourceURLs,
		} {
			if len(values) > 0 {
				rule[field] = texts(values)
			}
		}
		out = append(out, rule)
	}
	return out
}

func texts(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
