// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// apiRoles are the ClusterRoles that OLM v0 makes for each owned API. Each is aggregated to the Kubernetes role of its name.
var apiRoles = []struct {
	aggregate string
	verbs     []string
}{
	{"admin", []string{"*"}},
	{"edit", []string{"create", "update", "patch", "delete"}},
	{"view", []string{"get", "list", "watch"}},
}

// generateAPIClusterRoles lets those who administer, edit or view namespaces do so with the bundle's custom resources.
func generateAPIClusterRoles(in *input) ([]manifest.Manifest, []manifest.Problem) {
	if !in.APIClusterRoles {
		return nil, nil
	}
	var out []manifest.Manifest
	for _, owned := range in.CSV.Spec.CustomResourceDefinitions.Owned {
		plural, group, _ := strings.Cut(owned.Name, ".")
		prefix := owned.Name + "-" + owned.Version + "-"
		for _, role := range apiRoles {
			rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{plural}, Verbs: role.verbs}
			out = append(out, in.aggregated(prefix+role.aggregate, role.aggregate, rule))
		}
		read := rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
			ResourceNames: []string{owned.Name}, Verbs: []string{"get"}}
		out = append(out, in.aggregated(prefix+"crdview", "view", read))
	}
	return out, nil
}

func (in *input) aggregated(name, aggregate string, rule rbacv1.PolicyRule) manifest.Manifest {
	role := in.object(rbacGroup+"/v1", "ClusterRole", "", name, map[string]any{"rules": policyRules([]rbacv1.PolicyRule{rule})})
	role.Object.SetLabels(map[string]string{"rbac.authorization.k8s.io/aggregate-to-" + aggregate: "true"})
	return role
}
