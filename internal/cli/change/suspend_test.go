// SPDX-License-Identifier: Apache-2.0

package change

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// TestResume: objects of every kind are resumed alike, and one that a GitOps tool suspends is not.
func TestResume(t *testing.T) {
	flux := map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
	entry := func(manager, subresource, fields string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}}
	}
	const suspends = `{"f:spec":{"f:suspend":{}}}`
	for name, tc := range map[string]struct {
		reason  string
		labels  map[string]string
		entries []metav1.ManagedFieldsEntry
		export  bool
		refused bool
	}{
		"not delivered":      {reason: "no tool sets it again", entries: entry("kubectl", "", suspends)},
		"by the tool":        {reason: "it would set it again", labels: flux, entries: entry("kustomize-controller", "", suspends), refused: true},
		"exported":           {reason: "what is printed is for the tool", labels: flux, entries: entry("kustomize-controller", "", suspends), export: true},
		"by this command":    {reason: "the tool does not set it", labels: flux, entries: entry(kit.FieldManager, "", suspends)},
		"by kubectl edit":    {reason: "the tool does not set it", labels: flux, entries: entry("kubectl-edit", "", suspends)},
		"by kubectl patch":   {reason: "the tool does not set it", labels: flux, entries: entry("kubectl-patch", "", suspends)},
		"another field":      {reason: "the tool does not set it", labels: flux, entries: entry("kustomize-controller", "", `{"f:spec":{"f:path":{}}}`)},
		"of an inline field": {reason: "it is of the source", labels: flux, entries: entry("kustomize-controller", "", `{"f:spec":{"f:source":{"f:suspend":{}}}}`)},
		"a status":           {reason: "it is no spec", labels: flux, entries: entry("kustomize-controller", "status", suspends)},
		"no valid fields":    {reason: "nothing is known", labels: flux, entries: entry("kustomize-controller", "", `[`)},
		"no fields":          {reason: "nothing is known", labels: flux, entries: []metav1.ManagedFieldsEntry{{Manager: "kustomize-controller"}}},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: "fleet", Name: "shop", Labels: tc.labels, ManagedFields: tc.entries}
			for kind, object := range map[*kit.Kind]view.Object{
				&kit.Deployments: &v1alpha1.BundleDeployment{ObjectMeta: meta, Spec: v1alpha1.BundleDeploymentSpec{Suspend: true}},
				&kit.Sources:     &v1alpha1.BundleSource{ObjectMeta: meta, Spec: v1alpha1.BundleSourceSpec{Suspend: true}},
				&kit.Catalogs:    &v1alpha1.BundleCatalog{ObjectMeta: meta, Spec: v1alpha1.BundleCatalogSpec{Suspend: true}},
				&kit.Rollouts:    &v1alpha1.BundleRollout{ObjectMeta: meta, Spec: v1alpha1.BundleRolloutSpec{Suspend: true}},
			} {
				one := kit.Chosen{Target: kit.Target{Kind: *kind, Name: "shop"}, Object: object}
				if Suspend(object).Done != "suspended already" {
					t.Errorf("%s is not taken for suspended", kind.Name)
				}
				got, err := Resume(one, Options{Export: tc.export})
				want := "spec.suspend of " + kind.Name + " fleet/shop is set by Flux Kustomization flux-system/apps, which would set it again: remove it there"
				if tc.refused && (err == nil || err.Error() != want) || !tc.refused && (err != nil || got.Done != "resumed" || got.isNothing()) {
					t.Errorf("%s: %s: %+v, %v", kind.Name, tc.reason, got, err)
				}
			}
		})
	}
}
