// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

// generateOthers passes the bundle's other objects on, the namespaced ones in the install namespace (A1, A4). A custom
// resource that only shares the name of an allowed kind is most often a sample: it is left out unless asked for (A2).
func generateOthers(in *input) ([]manifest.Manifest, []manifest.Problem) {
	out := make([]manifest.Manifest, 0, len(in.Others))
	for _, m := range in.Others {
		kind, _ := bundle.KindNamed(m.Object.GetKind())
		switch group := m.Object.GroupVersionKind().Group; {
		case group == kind.Group && kind.Cluster:
			m.Object.SetNamespace("")
		case group == kind.Group:
			m.Object.SetNamespace(in.InstallNamespace)
		case !in.IncludeCustomResources:
			in.Warn("%s: %s is a custom resource of the group %q, not the Kubernetes object of that kind, and is left out; registryV1.includeCustomResources keeps it",
				m.File, manifest.Describe(m.Object), group)
			continue
		default:
			in.placeCustomResource(m)
		}
		in.warnOfSubjects(m)
		out = append(out, m)
	}
	return out, nil
}

// warnOfSubjects names the ServiceAccounts of other namespaces that a binding of the bundle grants permissions to (A4): subjects stay as
// they are, while the objects of the bundle are installed in the install namespace.
func (in *input) warnOfSubjects(m manifest.Manifest) {
	kind := m.Object.GroupVersionKind()
	if kind.Group != rbacv1.GroupName || kind.Kind != "RoleBinding" && kind.Kind != "ClusterRoleBinding" {
		return
	}
	subjects, _, _ := unstructured.NestedSlice(m.Object.Object, "subjects")
	for _, subject := range subjects {
		fields, _ := subject.(map[string]any)
		namespace, _ := fields["namespace"].(string)
		name, _ := fields["name"].(string)
		switch {
		case fields["kind"] != rbacv1.ServiceAccountKind || namespace == "" || namespace == in.InstallNamespace:
		case in.hasAccount(name):
			in.Warn("%s: %s binds ServiceAccount %s of the namespace %s, and the bundle's own is in the install namespace %s: it does not get these permissions",
				m.File, manifest.Describe(m.Object), name, namespace, in.InstallNamespace)
		default:
			in.Warn("%s: %s grants permissions to ServiceAccount %s of the namespace %s, which is not of the bundle", m.File, manifest.Describe(m.Object), name, namespace)
		}
	}
}

// hasAccount tells whether the bundle installs a ServiceAccount.
func (in *input) hasAccount(name string) bool {
	return slices.Contains(in.Accounts(), name) || slices.ContainsFunc(in.Others, func(m manifest.Manifest) bool {
		return m.Object.GetKind() == rbacv1.ServiceAccountKind && m.Object.GetName() == name
	})
}

// placeCustomResource follows the scope that the bundle's own CRD gives; without one the namespace stays open, to be
// set where the cluster's scope is known.
func (in *input) placeCustomResource(m manifest.Manifest) {
	namespace := ""
	if in.namespaced[m.Object.GroupVersionKind().GroupKind()] {
		namespace = in.InstallNamespace
	}
	m.Object.SetNamespace(namespace)
}
