// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/remove"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

func aRemovalPlan() remove.RemovalPlan {
	f := remove.RemovalPlan{Namespace: "demo", Name: "podinfo", Goes: []remove.AffectedObject{}, Stays: []remove.AffectedObject{
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.org", Why: "is kept with the resources of its kind"},
		{Kind: "PersistentVolumeClaim", Namespace: "demo", Name: "data", Why: "is kept, as its annotation satchel.dev/deletion-policy says"},
	}, Unknown: []remove.AffectedObject{{Kind: "Secret", Namespace: "other", Name: "a" + steering, Why: "you may not get it"}},
		Resources: []remove.Population{{Definition: "widgets.example.org", Kind: "Widget", Count: 3, Namespaces: []string{"a", "b"}, Deployments: []string{"a/b"},
			Finalized: 2, Finalizers: []string{"example.org/cleanup"}},
			{Definition: "gadgets.example.org", Problem: "its resources cannot be listed: " + steering}},
		Source: "podinfo", Needed: []string{"web"}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		f.Goes = append(f.Goes, remove.AffectedObject{Kind: "ConfigMap", Namespace: "demo", Name: name})
	}
	f.Goes = append(f.Goes, remove.AffectedObject{Kind: "Namespace", Name: "apps", Why: "is deleted when nothing else lives in it"})
	return f
}

func TestRemovalPlanOutput(t *testing.T) {
	text := aRemovalPlan().Print(printer.Style{})
	golden(t, "delete/text", text)
	if hidden := hiddenIn(text); hidden != "" {
		t.Error(hidden)
	}
	for _, o := range []printer.Output{printer.OutputJSON, printer.OutputYAML} {
		var out bytes.Buffer
		if err := remove.PrintRemovalPlan(testApp(&out), remove.DeleteOptions{Output: o}, aRemovalPlan()); err != nil || hiddenIn(out.String()) != "" {
			t.Errorf("%v %s", err, hiddenIn(out.String()))
		}
		golden(t, "delete/"+string(o), out.String())
	}
	remote := aRemovalPlan()
	remote.Cluster = "Secret prod-eu"
	if text := remote.Print(printer.Style{}); !strings.Contains(text, "its objects are on the cluster of the Secret prod-eu") {
		t.Error(text)
	}
}

// TestConfirm: only the one answer says yes.
func TestConfirm(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, typed string
		want          error
	}{
		"yes":     {"", "yes\n", nil},
		"no":      {"", "no\n", kit.ErrNo},
		"nothing": {"the end of the input is no answer", "", kit.ErrNo},
		"almost":  {"a hasty y is none", "y\n", kit.ErrNo},
	} {
		var out bytes.Buffer
		a := testApp(&out)
		a.Streams.In = strings.NewReader(tc.typed)
		if err := a.Confirm(t.Context(), "Really? ", "yes", "Nothing was deleted."); !errors.Is(err, tc.want) {
			t.Errorf("%s (%s): %v", name, tc.reason, err)
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out bytes.Buffer
	a := testApp(&out)
	blocked, unblock := newPipe()
	defer unblock()
	a.Streams.In = blocked
	if err := a.Confirm(ctx, "Really? ", "yes", "Nothing was deleted."); !errors.Is(err, context.Canceled) {
		t.Errorf("Ctrl-C: %v", err)
	}
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: GROUP}
spec:
  group: NAME.example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]`

// definition creates a CRD in a group of the namespace, which is deleted after the test.
func (c testCluster) definition(owner string) *unstructured.Unstructured {
	c.T.Helper()
	crd := parse(c.T, strings.NewReplacer("GROUP", "widgets."+c.Namespace+".example.org", "NAME", c.Namespace).Replace(widgets))
	if owner != "" {
		crd.SetLabels(inventory.Owner{Namespace: c.Namespace, Name: owner}.Labels())
	}
	if err := c.AnyClient().Create(c.T.Context(), crd); err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(func() { _ = c.AnyClient().Delete(context.WithoutCancel(c.T.Context()), crd) })
	return crd
}

// widget creates a custom resource, once its kind is served.
func (c testCluster) widget(name string, labels map[string]string) *unstructured.Unstructured {
	c.T.Helper()
	w := c.missing(c.Namespace+".example.org/v1", "Widget", name)
	w.SetLabels(labels)
	for {
		err := c.AnyClient().Create(c.T.Context(), w.DeepCopy())
		if err == nil {
			return w
		}
		if c.T.Context().Err() != nil || !kit.IsAPIMissing(err) {
			c.T.Fatal(err)
		}
	}
}

// gone tells whether an object does not exist, or is being deleted.
func (c testCluster) gone(o *unstructured.Unstructured) bool {
	c.T.Helper()
	live := o.DeepCopy()
	err := c.AnyClient().Get(c.T.Context(), client.ObjectKeyFromObject(o), live)
	if client.IgnoreNotFound(err) != nil {
		c.T.Fatal(err)
	}
	return err != nil || live.GetDeletionTimestamp() != nil
}

func TestDelete(t *testing.T) {
	c := newTestCluster(t)
	kept := c.object("podinfo", "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, annotations: {satchel.dev/deletion-policy: Orphan}}}")
	goes := c.object("podinfo", "{apiVersion: v1, kind: ConfigMap, metadata: {name: goes}}")
	foreign := c.object("other", "{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}}")
	crd := c.definition("podinfo")
	c.widget("one", nil)
	listed := lists(t, kept, goes, foreign, crd, c.missing("v1", "ConfigMap", "missing"))
	confirmed := func(d *v1alpha1.BundleDeployment) {
		for i := range d.Status.Inventory.Entries {
			d.Status.Inventory.Entries[i].F = inventory.Hash{1}.String()
		}
	}
	c.Create(aDeployment(listed, confirmed, func(d *v1alpha1.BundleDeployment) {
		d.Finalizers = []string{v1alpha1.Finalizer}
		d.Labels = map[string]string{"argocd.argoproj.io/instance": "apps"}
		d.Status.Healthy.Package = &v1alpha1.PackageStatus{Name: "podinfo", Version: "1.0.0"}
	}))
	c.Create(aDeployment(called("web"), func(d *v1alpha1.BundleDeployment) { d.Spec.DependsOn = []v1alpha1.Dependency{{Name: "podinfo"}} }))
	c.Create(aDeployment(called("shop"), func(d *v1alpha1.BundleDeployment) {
		d.Status.Inventory, d.Status.Healthy.Requires = &v1alpha1.Inventory{Target: "cluster"}, []v1alpha1.BundleRequirement{{Package: "podinfo", Range: "<2.0.0"}}
	}))

	shown := []string{"To delete (1 object):\n  ConfigMap " + c.Namespace + "/goes\n", "CustomResourceDefinition.apiextensions.k8s.io " + crd.GetName() + ": is kept with the resources of its kind",
		"ConfigMap " + c.Namespace + "/foreign: is left alone: it belongs to BundleDeployment " + c.Namespace + "/other", "ConfigMap " + c.Namespace + "/kept: ",
		"1 resource of " + crd.GetName() + " in " + c.Namespace, "Needed by (spec.dependsOn): web", "Its package is required by (status.healthy.requires): shop"}
	c.Want(c.Satchel("delete", "podinfo", "--dry-run"), kit.ExitOK, shown...)
	c.Want(c.Satchel("delete", "podinfo"), kit.ExitError, append(shown, "cannot ask for confirmation without a terminal", "add --yes", "comes from Argo CD")...)
	c.Want(c.Satchel("delete", "podinfo", "--dry-run", "--dangerous-delete-crds"), kit.ExitOK, crd.GetName()+": is deleted when no resource of its kind is left")
	c.Want(c.Satchel("delete", "podinfo", "--dry-run", "--orphan"), kit.ExitOK, "To keep (4 objects)")
	if c.deployment("podinfo").DeletionTimestamp != nil || c.deployment("podinfo").Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
		t.Fatal("something was done without a yes")
	}
	got := c.Satchel("delete", "podinfo", "--yes", "--timeout", "700ms")
	c.Want(got, kit.ExitNo, "deletion requested", "not within 700ms", "5 objects left: the controller has not begun yet", "Left (5 objects):\n")
	c.Want(c.Satchel("delete", "podinfo", "--timeout", "200ms"), kit.ExitNo, "not within 200ms")
	if got := c.Satchel("wait", "podinfo", "--for", "deleted", "--timeout", "200ms"); got.Code != kit.ExitNo {
		t.Error(got)
	}
	d := c.deployment("podinfo")
	d.Finalizers = nil
	if err := c.Client.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	c.Want(c.Satchel("delete", "podinfo"), kit.ExitError, `there is no BundleDeployment "podinfo"`)
	c.Want(c.Satchel("delete", "web", "--orphan", "--yes"), kit.ExitOK, "BundleDeployment web: gone\n")
}

// TestDangerousDelete deletes the custom resources of others too, and refuses if another deployment owns them.
func TestDangerousDelete(t *testing.T) {
	c := newTestCluster(t)
	crd := c.definition("podinfo")
	own := c.widget("own", inventory.Owner{Namespace: c.Namespace, Name: "podinfo"}.Labels())
	shared := c.widget("shared", inventory.Owner{Namespace: c.Namespace, Name: "other"}.Labels())
	free := c.widget("free", nil)
	c.Create(aDeployment(lists(t, crd, own)))

	c.Want(c.Satchel("delete", "podinfo", "--dangerous-delete-crds", "--yes"), kit.ExitError, "2 resources of "+crd.GetName()+" in "+c.Namespace+", some of them of "+c.Namespace+"/other",
		"belong to "+c.Namespace+"/other, which would create them again: delete those first")
	if c.gone(free) || c.gone(shared) || effective.DeletesCRDs(&c.deployment("podinfo").Spec) {
		t.Fatal("something was done all the same")
	}
	if err := c.AnyClient().Delete(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	c.Want(c.Satchel("delete", "podinfo", "--dangerous-delete-crds", "--yes"), kit.ExitOK, "1 custom resource gone", "BundleDeployment podinfo: gone")
	if !c.gone(free) || c.gone(own) {
		t.Error("not exactly the resources of others were deleted; the bundle's own are the controller's")
	}
}

func TestExport(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment(func(d *v1alpha1.BundleDeployment) {
		d.Labels = map[string]string{"team": "a", "kustomize.toolkit.fluxcd.io/name": "apps"}
		d.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
		d.Spec.Source.Sources[0].Image.SecretRef = &v1alpha1.LocalReference{Name: "pull"}
	}))
	owner := c.deployment("podinfo")
	c.Create(aSource(func(s *v1alpha1.BundleSource) { s.OwnerReferences = ownedBy(owner) }))
	c.Create(aSource(func(s *v1alpha1.BundleSource) {
		s.Name, s.Annotations = "own", map[string]string{"note": "a" + steering}
	}))

	got := c.Satchel("export", "podinfo")
	c.Want(got, kit.ExitOK, "Not exported, but referred to: Secret/pull, ServiceAccount/installer\n", "  labels:\n    team: a\n", "kind: BundleDeployment\n")
	for _, word := range []string{"status", "uid", "resourceVersion", "managedFields", "last-applied", "fluxcd", "generation", "creationTimestamp", "finalizers"} {
		if strings.Contains(got.Out, word) {
			t.Errorf("%s is exported:\n%s", word, got.Out)
		}
	}
	c.Want(c.Satchel("export", "source", "podinfo"), kit.ExitError, "BundleSource podinfo is spec.source of the BundleDeployment podinfo: export that")
	all := c.Satchel("export", "all", "--all")
	if strings.Count(all.Out, "\n---\n") != 1 || !strings.Contains(all.Out, `"name": "own"`) || hiddenIn(all.Out) != "" {
		t.Errorf("got %s %s", all, hiddenIn(all.Out))
	}
	again := parse(t, got.Out)
	if err := c.Client.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	if err := c.AnyClient().Create(t.Context(), again); err != nil {
		t.Errorf("what was exported cannot be created: %v", err)
	}
	c.Want(c.Satchel("export", "--all", "-o", "json"), kit.ExitOK, `"kind": "BundleDeployment"`)
}
