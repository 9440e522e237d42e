// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// A CRD that an upgrade drops is released, and its resources stay.
func TestReleasedDefinition(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	w.MustApply(w.widgets())
	const rest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
`
	w.MustApply(rest)
	// The widget of the bundle is pruned with it; one that a user made is not.
	user := &unstructured.Unstructured{Object: map[string]any{"apiVersion": w.widget().GroupVersion().String(), "kind": "Widget", "metadata": map[string]any{"name": "users"}}}
	widgets := w.Dynamic.Resource(w.widget()).Namespace(w.Namespace)
	if _, err := widgets.Create(t.Context(), user, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pruned := w.prune(rest)
	if !pruned.Complete() || pruned.Deleted != 1 || len(pruned.Notes) != 1 {
		t.Errorf("got %+v", pruned)
	}
	if len(pruned.DeletedIDs) != 1 || pruned.DeletedIDs[0].Kind != "Widget" {
		t.Errorf("deleted %v, want the widget and not the released CRD", pruned.DeletedIDs)
	}
	if _, err := widgets.Get(t.Context(), "users", metav1.GetOptions{}); err != nil {
		t.Errorf("the user's widget: %v", err)
	}
	if w.Inventory.Len() != 1 {
		t.Errorf("inventory %v", w.Inventory.Entries)
	}
}

// With pruning off, objects that left the bundle are released: they stay, orphaned and
// without owner, and leave the inventory.
func TestReleasedInsteadOfPruned(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	stages := w.planPruning(oneMap, pruning.Policy{Disabled: true}).Prune
	pruned, err := removal.Prune(t.Context(), w.Client, w.Owner, stages, removal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !pruned.Complete() || pruned.Deleted != 0 || len(pruned.DeletedIDs) != 0 || len(pruned.Gone) != 1 || len(pruned.Notes) != 1 {
		t.Errorf("got %+v", pruned)
	}
	two, err := w.Admin.CoreV1().ConfigMaps(w.Namespace).Get(t.Context(), "two", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if two.Annotations[inventory.AnnotationOrphaned] != w.Namespace+"/app" || len(two.Labels) > 0 || two.DeletionTimestamp != nil {
		t.Errorf("annotations %v, labels %v: want it marked and free of our labels", two.Annotations, two.Labels)
	}
	for _, entry := range two.ManagedFields {
		if entry.Manager == w.Owner.Manager() {
			t.Error("its fields are still ours")
		}
	}
}

// A conversion webhook that is deleted with its operator is removed from a CRD with
// objects that are all stored in one version; adopted again, the CRD converts again.
func TestReleasedConversion(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	const conversion = `
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {url: "https://198.18.0.1/convert"}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object}}`
	bundle := w.Objects(strings.Replace(w.widgets(), "\n  versions:", conversion, 1))[1:2]
	w.ApplyObjects(bundle, apply.Options{})
	w.removeAll()
	crd, err := w.definition()
	if err != nil {
		t.Fatal(err)
	}
	if strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy"); strategy != "None" {
		t.Errorf("conversion strategy %q", strategy)
	}
	if result := w.ApplyObjects(bundle, apply.Options{}); !result.Complete() {
		t.Fatal(result.Errors())
	}
	crd, err = w.definition()
	if err != nil {
		t.Fatal(err)
	}
	if strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy"); strategy != "Webhook" {
		t.Errorf("after it was adopted: conversion strategy %q", strategy)
	}
}

// Objects that an upgrade drops are deleted after the custom resources that may need them.
func TestPruneWaitsForCustomResources(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	w.MustApply(w.widgets() + "\n---\n" + oneMap)
	widgets := w.Dynamic.Resource(w.widget()).Namespace(w.Namespace)
	if _, err := widgets.Patch(t.Context(), "first", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.org/hold"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		pruned := w.prune(oneMap)
		if len(pruned.Waiting) != 1 || pruned.Complete() || w.data("settings") == nil {
			t.Fatalf("got %+v: want it to wait for the widget", pruned)
		}
	}
	if _, err := widgets.Patch(t.Context(), "first", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if pruned := w.prune(oneMap); !pruned.Complete() || w.Inventory.Len() != 1 {
		t.Errorf("got %+v", pruned)
	}
}

// A removal finds the resources of a CRD that another client deleted gone with it.
func TestF22DefinitionGone(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	w.MustApply(w.widgets())
	crd, err := w.definition()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Dynamic.Resource(definitions).Delete(t.Context(), crd.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if notes := w.removeAll(); len(notes) > 0 {
		t.Errorf("left behind: %v", notes)
	}
}

// A CRD that another deployment adopted after the plan was made is not released.
func TestT13ReleaseSparesOthers(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	w.MustApply(w.widgets())
	p := w.Plan(w.Objects(oneMap))
	theirs := []byte(`{"metadata":{"labels":{"satchel.dev/deployment":"other"}}}`)
	crd, err := w.definition()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Dynamic.Resource(definitions).Patch(t.Context(), crd.GetName(), types.MergePatchType, theirs, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	pruned, err := removal.Prune(t.Context(), w.Client, w.Owner, p.Prune, removal.Options{})
	if err != nil || !strings.Contains(strings.Join(pruned.Notes, ";"), "is left alone") {
		t.Errorf("got %+v, %v", pruned, err)
	}
	if crd, err = w.definition(); err != nil || crd.GetLabels()["satchel.dev/deployment"] != "other" {
		t.Errorf("labels %v, %v", crd.GetLabels(), err)
	}
}

// planPruning plans manifests with the pruning of a spec.
func (w *world) planPruning(manifests string, pruning pruning.Policy) plan.Plan {
	w.T.Helper()
	in, err := observe.Cluster(w.T.Context(), w.Client, observe.Request{
		Owner: w.Owner, Desired: w.Objects(manifests), Previous: w.Inventory, InstallNamespace: w.Namespace, Rules: plan.Rules{Pruning: pruning},
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return plan.Make(in)
}
