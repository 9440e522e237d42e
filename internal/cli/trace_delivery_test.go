// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// foreignCRD is a CRD of another tool: any fields, as their versions differ.
func foreignCRD(group, version, kind string) *apiextensionsv1.CustomResourceDefinition {
	plural, anything := strings.ToLower(kind)+"s", true
	if strings.HasSuffix(kind, "y") {
		plural = strings.TrimSuffix(strings.ToLower(kind), "y") + "ies"
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything},
			}}},
		},
	}
}

// TestTraceToTheDelivery climbs on from the BundleDeployment to what delivered it.
func TestTraceToTheDelivery(t *testing.T) {
	c := newTestCluster(t)
	_, err := envtest.InstallCRDs(controlplane.Shared(t).RESTConfig(), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{
		foreignCRD("kustomize.toolkit.fluxcd.io", "v1", "Kustomization"), foreignCRD("source.toolkit.fluxcd.io", "v1", "GitRepository"),
		foreignCRD("argoproj.io", "v1alpha1", "Application"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	here := func(text string) string { return strings.ReplaceAll(text, "HERE", c.Namespace) }
	for _, text := range []string{
		`{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: fleet}, spec: {url: https://git.example.org/fleet.git, suspend: true}}`,
		`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: operators}, spec: {path: ./operators, sourceRef: {kind: GitRepository, name: fleet}},
			status: {lastAppliedRevision: main@sha1:abc, conditions: [{type: Ready, status: "False", reason: HealthCheckFailed, message: timeout}], inventory: {entries: [{id: HERE_kustomized_satchel.dev_BundleDeployment, v: v1alpha1}]}}}`,
		`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: paused}, spec: {suspend: true, sourceRef: {kind: GitRepository, name: missing}}}`,
		`{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: apps}, spec: {source: {repoURL: https://git.example.org/apps.git, path: prod}},
			status: {sync: {status: Synced, revision: 0123abc}, health: {status: Degraded}, resources: [{group: satchel.dev, kind: BundleDeployment, namespace: HERE, name: applied}]}}`,
	} {
		c.object("", here(text))
	}
	by := func(name string) func(*v1alpha1.BundleDeployment) {
		return func(d *v1alpha1.BundleDeployment) {
			d.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": name, "kustomize.toolkit.fluxcd.io/namespace": c.Namespace}
		}
	}
	tracking := func(id string) func(*v1alpha1.BundleDeployment) {
		return func(d *v1alpha1.BundleDeployment) {
			d.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": here(id)}
		}
	}
	fromGit := func(d *v1alpha1.BundleDeployment) {
		d.Spec.Source = nil
		d.Spec.SourceRef = &v1alpha1.SourceReference{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Name: "fleet"}
	}
	c.Create(aDeployment(called("kustomized"), by("operators")))
	c.Create(aDeployment(called("copied"), by("operators")))
	c.Create(aDeployment(called("held"), by("paused")))
	c.Create(aDeployment(called("gone"), by("former")))
	c.Create(aDeployment(called("applied"), tracking("HERE_apps:satchel.dev/BundleDeployment:HERE/applied")))
	c.Create(aDeployment(called("forged"), tracking("HERE_apps:apps/Deployment:HERE/web")))
	c.Create(aDeployment(called("elsewhere"), tracking("central:satchel.dev/BundleDeployment:HERE/elsewhere")))
	c.Create(aDeployment(called("fetched"), fromGit))
	for name, tc := range map[string]struct {
		reason string
		want   []string
		not    string
	}{
		"kustomized": {"to the repository in Git", []string{
			"└─ delivered by Kustomization HERE/operators: not Ready, HealthCheckFailed: timeout\n", "├─ revision  main@sha1:abc\n",
			"└─ from      GitRepository HERE/fleet: suspended, so nothing newer is taken https://git.example.org/fleet.git (./operators)\n",
		}, "does not list it"},
		"copied":    {"labels are hints", []string{"delivered by Kustomization HERE/operators", "Note: Kustomization HERE/operators, which the labels of the BundleDeployment name, does not list it: they are copied, or it no longer delivers it\n"}, ""},
		"held":      {"nothing newer arrives", []string{"delivered by Kustomization HERE/paused: suspended, so nothing newer is taken\n", "Note: GitRepository HERE/missing, from which it is delivered, does not exist here"}, ""},
		"gone":      {"what was meant", []string{"delivered by Kustomization HERE/former\n", "Note: Kustomization HERE/former, by which it was delivered, as its labels and annotations say, does not exist here"}, ""},
		"applied":   {"an Application in any namespace", []string{"delivered by Application HERE/apps: Synced, Degraded\n", "├─ revision  0123abc\n", "└─ from      https://git.example.org/apps.git (prod)\n"}, "does not list it"},
		"forged":    {"the annotation is of another object", nil, "delivered by"},
		"elsewhere": {"Argo CD may run on another cluster", []string{"delivered by Application argocd/central\n", "does not exist here"}, ""},
		"fetched":   {"a source of Flux that is suspended", []string{"└─ from GitRepository HERE/fleet: suspended, so nothing newer is taken\n"}, "delivered by"},
	} {
		t.Run(name, func(t *testing.T) {
			c := c
			c.T = t
			want := make([]string, 0, len(tc.want))
			for _, text := range tc.want {
				want = append(want, here(text))
			}
			got := c.Satchel("trace", "bundledeployment/"+name)
			c.Want(got, kit.ExitOK, want...)
			if tc.not != "" && strings.Contains(got.Out, tc.not) {
				t.Errorf("%q in %s", tc.not, got.Out)
			}
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}
