// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// TestCheckOfArgoTracking: where Argo CD tracks objects by a label, it takes objects of a bundle that have the name of an
// Application as the value for its own, and may prune them.
func TestCheckOfArgoTracking(t *testing.T) {
	c := newTestCluster(t)
	_, err := envtest.InstallCRDs(controlplane.Shared(t).RESTConfig(), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{
		foreignCRD("argoproj.io", "v1alpha1", "Application"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Satchel("check"); strings.Contains(got.Out, "Argo CD") {
		t.Errorf("without an Application nothing is said of Argo CD: %s", got.Out)
	}
	application := c.object("", "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: shop}, spec: {}}")
	t.Cleanup(func() { _ = c.AnyClient().Delete(context.WithoutCancel(t.Context()), application) })
	taken := c.object("", "{apiVersion: v1, kind: ConfigMap, metadata: {name: taken, labels: {app.kubernetes.io/instance: shop, example.org/app: other}}}")
	other := c.object("", "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, labels: {app.kubernetes.io/instance: release}}}")
	c.object("", "{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, labels: {app.kubernetes.io/instance: shop}}}")
	c.Create(aDeployment(called("app"), lists(t, taken, other)))
	configuration := c.object("", "{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cm}}")
	hint := "Set application.resourceTrackingMethod: annotation in the ConfigMap " + c.Namespace + "/argocd-cm."
	object := "ConfigMap " + c.Namespace + "/taken of BundleDeployment " + c.Namespace + "/app, as one of the Application shop"
	for name, tc := range map[string]struct {
		reason, method, key string
		want, not           []string
	}{
		"label":       {"it is the setting of many", "label", "", []string{"! Argo CD", "it tracks objects by the label app.kubernetes.io/instance", object, hint}, []string{"/other", "/foreign"}},
		"unset":       {"the default of version 2", "", "", []string{"! Argo CD", "before version 3 it tracks", object}, nil},
		"another key": {"no object has it", "label", "example.org/app", []string{"✓ Argo CD", "nothing that Satchel installed has that of an Application"}, []string{object}},
		"annotation":  {"labels do not matter", "annotation", "", []string{"✓ Argo CD", "by annotation"}, []string{object}},
	} {
		patch := fmt.Appendf(nil, `{"data":{"application.resourceTrackingMethod":%q,"application.instanceLabelKey":%q}}`, tc.method, tc.key)
		if err := c.AnyClient().Patch(t.Context(), configuration, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
		got := c.Satchel("check").Out
		for _, text := range tc.want {
			if !strings.Contains(got, text) {
				t.Errorf("%s: %q is missing in %s: %s", name, text, got, tc.reason)
			}
		}
		for _, text := range tc.not {
			if strings.Contains(got, text) {
				t.Errorf("%s: %q in %s: %s", name, text, got, tc.reason)
			}
		}
	}
}
