// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Unfit says why what was written for one version of a CRD cannot work with the one on the cluster; "" if it can. The first
// line that holds decides.
//
//	another kind or scope                         the resources are others
//	a served version is not served any more       its clients get errors
//	several versions that only a webhook converts the wanted version has no webhook: stored data cannot be read
func Unfit(live, wanted *unstructured.Unstructured) string {
	of, will := crdOf(live), crdOf(wanted)
	switch {
	case of.kind != will.kind || of.scope != will.scope:
		return fmt.Sprintf("it defines %s (%s) and not %s (%s)", of.kind, of.scope, will.kind, will.scope)
	case ConvertsByWebhook(live) && !ConvertsByWebhook(wanted) && len(of.versions) > 1:
		return "its resources are stored in versions that only the webhook of the newer revision converts"
	}
	for _, version := range will.served {
		if !slices.Contains(of.served, version) {
			return fmt.Sprintf("it does not serve version %.63s", version)
		}
	}
	return ""
}

// crdParts are the parts of a CRD that decide how its resources are used.
type crdParts struct {
	kind, scope      string
	versions, served []string
}

func crdOf(crd *unstructured.Unstructured) crdParts {
	var parts crdParts
	parts.kind, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "kind")
	parts.scope, _, _ = unstructured.NestedString(crd.Object, "spec", "scope")
	for _, version := range versionsOf(crd) {
		parts.versions = append(parts.versions, nameOf(version))
	}
	parts.served = ServedVersions(crd)
	return parts
}
