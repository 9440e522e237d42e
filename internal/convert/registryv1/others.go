// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
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
		out = append(out, m)
	}
	return out, nil
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
