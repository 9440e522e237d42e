// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/migrate/internal/adopt"
	"github.com/satchel-dev/satchel/tests/clirig"
	"github.com/satchel-dev/satchel/tests/installation"
)

// adopted is a bundle of four objects.
const adopted = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: b}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.org/web:1"}]}
---
apiVersion: example.org/v1
kind: Unheard
metadata: {name: of}
`

// adoptionCluster has a deployment of the bundle, and the bundle's objects with other owners.
type adoptionCluster struct {
	testCluster

	any    client.Client
	served *installation.Deployments
}

func newAdoption(t *testing.T) adoptionCluster {
	t.Helper()
	c := adoptionCluster{testCluster: newTestCluster(t)}
	var err error
	if c.any, err = client.New(c.CP.RESTConfig(), client.Options{}); err != nil {
		t.Fatal(err)
	}
	c.served, _, err = installation.ServeArtifacts(t.Context(), c.CP.RESTConfig(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"all.yaml": {Data: []byte(adopted)}}
	if _, err := c.served.Publish(t.Context(), c.Namespace, "web", "v1", files); err != nil {
		t.Fatal(err)
	}
	c.Create(clirig.Deployment(clirig.Called("web"), func(d *v1alpha1.BundleDeployment) {
		d.Spec.Source, d.Spec.SourceRef = nil, &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "web"}
	}))
	return c
}

// put creates an object of the bundle, changed, as a field manager.
func (c adoptionCluster) put(manager, name string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	c.T.Helper()
	for document := range strings.SplitSeq(adopted, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			c.T.Fatal(err)
		}
		if object.GetKind()+"/"+object.GetName() != name {
			continue
		}
		object.SetNamespace(c.Namespace)
		if change != nil {
			change(object)
		}
		if err := c.any.Create(c.T.Context(), object, client.FieldOwner(manager)); err != nil {
			c.T.Fatal(err)
		}
		return object
	}
	c.T.Fatalf("there is no %s", name)
	return nil
}

func labelled(pairs ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		labels := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			labels[pairs[i]] = pairs[i+1]
		}
		o.SetLabels(labels)
	}
}

// TestAdoptShows checks the dry run for objects of several former owners, which are not changed.
func TestAdoptShows(t *testing.T) {
	c := newAdoption(t)
	c.put("helm", "ConfigMap/settings", func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": c.Namespace})
	})
	c.put("kustomize-controller", "Service/web", labelled("kustomize.toolkit.fluxcd.io/name", "apps", "kustomize.toolkit.fluxcd.io/namespace", "flux-system"))
	deployment := c.put("argocd-controller", "Deployment/web", func(o *unstructured.Unstructured) {
		labelled("argocd.argoproj.io/instance", "shop")(o)
		_ = unstructured.SetNestedField(o.Object, "x", "spec", "template", "metadata", "annotations", "example.org/theirs")
		_ = unstructured.SetNestedField(o.Object, "former", "spec", "template", "spec", "serviceAccountName")
	})
	extra := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
		"name": "extra", "namespace": c.Namespace, "annotations": map[string]any{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": c.Namespace}}}}
	if err := c.any.Create(t.Context(), extra); err != nil {
		t.Fatal(err)
	}
	got := c.Satchel("adopt", "web", "--dry-run")
	if got.Code != kit.ExitOK {
		t.Errorf("got %s", got)
	}
	clirig.Golden(t, "adopt/dry-run", strings.ReplaceAll(got.String(), c.Namespace, "NAMESPACE"))

	var found adopt.Adoption
	if got := c.Satchel("adopt", "web", "--dry-run", "-o", "json"); json.Unmarshal([]byte(got.Out), &found) != nil || len(found.Objects) != 4 || len(found.Restarts) != 1 || len(found.Former) != 3 {
		t.Errorf("got %s", got)
	}
	// Pods would restart, so nothing is changed although --yes was given.
	c.Want(c.Satchel("adopt", "web", "--yes"), kit.ExitNo, "Nothing was adopted, because Pods would restart")
	after := deployment.DeepCopy()
	if err := c.any.Get(t.Context(), client.ObjectKeyFromObject(deployment), after); err != nil || after.GetGeneration() != 1 || after.GetAnnotations()[v1alpha1.OrphanedAnnotation] != "" || after.GetLabels()["argocd.argoproj.io/instance"] == "" {
		t.Errorf("the Deployment changed: %v %v", err, after)
	}
}

// TestAdoptReleases checks that the objects have no owner even if no controller adopts them, and that a second run continues.
func TestAdoptReleases(t *testing.T) {
	c := newAdoption(t)
	owner := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "owner", "namespace": c.Namespace}}}
	if err := c.any.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	theirs := metav1.OwnerReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "web.v1", UID: "00000000-0000-0000-0000-000000000001"}
	friends := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.GetUID()}
	settings := c.put("olm", "ConfigMap/settings", func(o *unstructured.Unstructured) {
		labelled("olm.owner", "web.v1", "olm.owner.kind", "ClusterServiceVersion", "mine", "yes")(o)
		o.SetOwnerReferences([]metav1.OwnerReference{theirs, friends})
		o.SetFinalizers([]string{"operators.coreos.com/x", "example.org/y"})
	})
	t.Cleanup(func() {
		_ = c.any.Patch(context.WithoutCancel(t.Context()), settings, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	for range 2 { // released once, and then still
		c.Want(c.Satchel("adopt", "web", "--yes", "--timeout", "1s"), kit.ExitError, "ConfigMap "+c.Namespace+"/settings: released", "was not handled within 1s")
		live := settings.DeepCopy()
		if err := c.any.Get(t.Context(), client.ObjectKeyFromObject(settings), live); err != nil {
			t.Fatal(err)
		}
		want := &unstructured.Unstructured{Object: map[string]any{}}
		want.SetLabels(map[string]string{"mine": "yes"})
		want.SetAnnotations(map[string]string{v1alpha1.OrphanedAnnotation: "true"})
		want.SetOwnerReferences([]metav1.OwnerReference{friends})
		want.SetFinalizers([]string{"example.org/y"})
		got := &unstructured.Unstructured{Object: map[string]any{}}
		got.SetLabels(live.GetLabels())
		got.SetAnnotations(live.GetAnnotations())
		got.SetOwnerReferences(live.GetOwnerReferences())
		got.SetFinalizers(live.GetFinalizers())
		if diff := cmp.Diff(want.Object, got.Object); diff != "" || live.GetUID() != settings.GetUID() {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// TestAdoptRefuses checks that nothing is changed, and that the error says why.
func TestAdoptRefuses(t *testing.T) {
	c := newAdoption(t)
	other := c.put("satchel/elsewhere/other", "ConfigMap/settings", labelled(v1alpha1.DeploymentLabel, "other", v1alpha1.NamespaceLabel, "elsewhere"))
	c.Want(c.Satchel("adopt", "web", "--yes"), kit.ExitNo, "conflict", "belongs to BundleDeployment elsewhere/other", "Nothing was adopted")
	after := other.DeepCopy()
	if err := c.any.Get(t.Context(), client.ObjectKeyFromObject(other), after); err != nil || after.GetResourceVersion() != other.GetResourceVersion() {
		t.Errorf("the object changed: %v", err)
	}
	c.Create(clirig.Deployment(clirig.Called("asleep"), func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true }))
	c.Create(clirig.Deployment(clirig.Called("unfetched"), clirig.Reference))
	for want, args := range map[string][]string{
		"there is no BundleDeployment \"wbe\"":                        {"wbe", "--dry-run"},
		"is suspended, so it would not adopt the released objects":    {"asleep", "--dry-run"},
		"there is no BundleSource":                                    {"unfetched", "--dry-run"},
		"without a terminal: add --yes, or --dry-run to look first":   {"web"},
		"--dry-run asks nothing, so --yes has no effect":              {"web", "--dry-run", "--yes"},
		"-o json shows what would happen: add --dry-run":              {"web", "--yes", "-o", "json"},
		"adopt is for BundleDeployments":                              {"source/web", "--yes"},
		"--former \"web\" is none of csv/NAME, clusterextension/NAME": {"web", "--yes", "--former", "web"},
		"you may not get bundledeployments.satchel.dev":               {"web", "--dry-run", "--as", "unprivileged"},
	} {
		c.Want(c.Satchel(append([]string{"adopt"}, args...)...), kit.ExitError, want)
	}
}

// TestManifestsOfCluster reads from a cluster that serves none of the APIs.
func TestManifestsOfCluster(t *testing.T) {
	c := newTestCluster(t)
	c.Want(c.Satchel("manifests", "--cluster"), kit.ExitOK, "The cluster serves none of the APIs of RukPak and OLM", "Nothing to migrate was found.")
}

// TestFormerOwnerRemoval checks that each recognized kind of owner has instructions for its removal.
func TestFormerOwnerRemoval(t *testing.T) {
	for _, mark := range adopt.Markers {
		object := &metav1.ObjectMeta{Name: "a", Namespace: "b", Labels: map[string]string{mark.Name: "theirs"}}
		if mark.Namespace != "" {
			object.Labels[mark.Namespace] = "there"
		}
		found := adopt.FormersOf(object)
		if len(found) != 1 || found[0].RemovalText() == "" || !strings.Contains(found[0].RemovalText(), "theirs") {
			t.Errorf("%s: %+v", mark.Name, found)
		}
	}
	evil := adopt.Former{Kind: adopt.ReleaseKind, Name: "a; rm -rf ~", Namespace: "b\x1b[2J"}
	if got := evil.RemovalText(); !strings.Contains(got, "'a; rm -rf ~'") || clirig.HiddenIn(got) != "" {
		t.Errorf("got %q", got)
	}
}

// TestFormerOfTrackingID: Argo CD names the application, its namespace if that is another one, and the object.
func TestFormerOfTrackingID(t *testing.T) {
	for id, want := range map[string]string{
		"shop:apps/Deployment:web/shop":      "argocd app delete shop --cascade=false",
		"team_shop:apps/Deployment:web/shop": "argocd app delete team/shop --cascade=false",
	} {
		object := &metav1.ObjectMeta{Labels: map[string]string{"argocd.argoproj.io/instance": "shop"}, Annotations: map[string]string{"argocd.argoproj.io/tracking-id": id}}
		found := adopt.FormersOf(object)
		if len(found) != 2 || found[1].RemovalText() != want || found[1].Removable() {
			t.Errorf("%s: %+v", id, found)
		}
	}
	twice := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"argocd.argoproj.io/instance": "shop"},
		Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:/Service:web/shop"}}}
	if owners := adopt.FormerOwners([]adopt.AdoptedObject{{Action: adopt.Adopted, Live: twice}}, "web"); len(owners) != 1 || owners[0].String() != "Argo CD application shop" {
		t.Errorf("got %+v", owners)
	}
}

// TestAdoptWaits: right after kubectl apply, the source is not fetched yet.
func TestAdoptWaits(t *testing.T) {
	c := newAdoption(t)
	c.Create(clirig.Deployment(clirig.Called("late"), func(d *v1alpha1.BundleDeployment) {
		d.Spec.Source, d.Spec.SourceRef = nil, &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "late"}
	}))
	c.Create(&v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Spec: v1alpha1.BundleSourceSpec{
		Sources: []v1alpha1.Source{{ConfigMap: &v1alpha1.LocalReference{Name: "content"}}}}})
	c.Want(c.Satchel("adopt", "late", "--dry-run", "--timeout", "100ms"), kit.ExitError, "Waiting for the BundleSource late: ", "has not been fetched yet")

	f := c.Follow("adopt", "late", "--dry-run")
	f.UntilNoted("Waiting for the BundleSource late: ")
	if _, err := c.served.Publish(t.Context(), c.Namespace, "late", "v1", fstest.MapFS{"all.yaml": {Data: []byte(adopted)}}); err != nil {
		t.Fatal(err)
	}
	if code := <-f.Code; code != kit.ExitOK || !strings.Contains(f.Out.String(), "ConfigMap "+c.Namespace+"/settings") {
		t.Errorf("exit %d: %s%s", code, f.Out, f.Err)
	}
}

// TestFormerNamed checks that an owner of --former is treated like a found one, without duplicates.
func TestFormerNamed(t *testing.T) {
	named := adopt.FormerNamed("csv/web.v1", "apps")
	found := []adopt.AdoptedObject{{Action: adopt.Adopted, Live: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "apps", Labels: map[string]string{"olm.owner": "web.v1", "olm.owner.kind": adopt.CSVKind, "olm.owner.namespace": "apps"}}}}}
	owners := adopt.FormerOwners(found, "apps", named...)
	if len(owners) != 1 || owners[0].String() != "ClusterServiceVersion apps/web.v1" || !owners[0].Removable() {
		t.Errorf("got %+v", owners)
	}
	for _, wrong := range []string{"", "csv", "csv/", "csv/a/b", "deployment/a"} {
		if adopt.IsFormer(wrong) {
			t.Errorf("%q is taken for a former owner", wrong)
		}
	}
}

// TestChanges compares templates as the API server has them.
func TestChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, before, after string
		want                  []string
	}{
		"equal":      {"nothing restarts", `{a: {b: 1}}`, `{a: {b: 1}}`, nil},
		"empty":      {"an empty mapping is none", `{a: {}, b: []}`, `{}`, nil},
		"annotation": {"keys with dots", `{annotations: {olm.operatorGroup: x}}`, `{annotations: {}}`, []string{"t.annotations[olm.operatorGroup] is removed"}},
		"in lists":   {"the container is named by its place", `{c: [{image: a, env: [{name: A}]}]}`, `{c: [{image: b}]}`, []string{"t.c[0].env is removed", "t.c[0].image changes"}},
		"lists":      {"another number of them", `{c: [{a: 1}]}`, `{c: [{a: 1}, {b: 2}]}`, []string{"t.c changes"}},
		"added":      {"what only the bundle has", `{}`, `{a: {b: c}}`, []string{"t.a.b is added"}},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after map[string]any
			if err := yaml.Unmarshal([]byte(tc.before), &before); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(tc.after), &after); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, adopt.Changes("t", before, after)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestToKeep checks the suggested options that avoid restarts, which have to suit all Deployments.
func TestToKeep(t *testing.T) {
	hash := map[string]string{"olmcahash": "x"}
	for name, tc := range map[string]struct {
		reason string
		given  adopt.Adoption
		want   map[string]any
	}{
		"nothing": {"nothing restarts", adopt.Adoption{Operator: true}, nil},
		"an option": {"annotations and the variable", adopt.Adoption{Operator: true, Restarts: []adopt.Restart{{Annotations: hash, Conditions: true}}},
			map[string]any{"operatorConditions": true, "deploymentConfig": map[string]any{"annotations": hash}}},
		"plain":  {"there are no such options", adopt.Adoption{Restarts: []adopt.Restart{{Annotations: hash}}}, nil},
		"differ": {"the other one would restart for it", adopt.Adoption{Operator: true, Restarts: []adopt.Restart{{Annotations: hash}, {}}}, nil},
		"other":  {"no option helps", adopt.Adoption{Operator: true, Restarts: []adopt.Restart{{Because: []string{"x changes"}}}}, map[string]any{}},
	} {
		if diff := cmp.Diff(tc.want, tc.given.ToKeep()); diff != "" {
			t.Errorf("%s: %s: -want +got:\n%s", name, tc.reason, diff)
		}
	}
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"env": []any{map[string]any{"name": "OPERATOR_CONDITION_NAME"}}}}}}
	if !adopt.HasConditionName(template) || adopt.HasConditionName(map[string]any{}) {
		t.Error("the variable is not found")
	}
	var out strings.Builder
	adopt.PrintRestarts(&out, adopt.Adoption{Operator: true, Restarts: []adopt.Restart{{ID: "Deployment.apps a/b", Because: []string{"it changes"}, Annotations: hash}}})
	if !strings.Contains(out.String(), "  spec:\n    registryV1:\n      deploymentConfig:\n        annotations:\n          olmcahash: x\n") {
		t.Errorf("got\n%s", out.String())
	}
}
