// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
)

// A CRD that an upgrade drops is released, and its resources live on.
func TestReleasedDefinition(t *testing.T) {
	w := newWorld(t, everything...)
	w.grantCluster("installer", definers)
	w.mustApply(w.widgets())
	const rest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
`
	w.mustApply(rest)
	// The widget of the bundle is pruned with it; one that a user made is not.
	user := &unstructured.Unstructured{Object: map[string]any{"apiVersion": w.widget().GroupVersion().String(), "kind": "Widget", "metadata": map[string]any{"name": "users"}}}
	widgets := w.dynamic.Resource(w.widget()).Namespace(w.namespace)
	if _, err := widgets.Create(t.Context(), user, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pruned := w.prune(rest)
	if !pruned.Complete() || pruned.Deleted != 1 || len(pruned.Notes) != 1 {
		t.Errorf("got %+v", pruned)
	}
	if _, err := widgets.Get(t.Context(), "users", metav1.GetOptions{}); err != nil {
		t.Errorf("the user's widget: %v", err)
	}
	if w.inventory.Len() != 1 {
		t.Errorf("inventory %v", w.inventory.Entries)
	}
}

// A conversion webhook that goes with its operator is not left on a CRD whose
// objects are all stored in one version, and is told of where it stays.
func TestReleasedConversion(t *testing.T) {
	w := newWorld(t, everything...)
	w.grantCluster("installer", definers)
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
	bundle := w.objects(strings.Replace(w.widgets(), "\n  versions:", conversion, 1))[1:2]
	w.applyObjects(bundle, apply.Options{})
	w.removeAll()
	crd, err := w.definition()
	if err != nil {
		t.Fatal(err)
	}
	if strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy"); strategy != "None" {
		t.Errorf("conversion strategy %q", strategy)
	}
	if result := w.applyObjects(bundle, apply.Options{}); !result.Complete() {
		t.Fatal(result.Errors())
	}
	crd, err = w.definition()
	if err != nil {
		t.Fatal(err)
	}
	if strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy"); strategy != "Webhook" {
		t.Errorf("after it was taken up: conversion strategy %q", strategy)
	}
	_, err = w.dynamic.Resource(definitions).Patch(t.Context(), crd.GetName(), types.MergePatchType, []byte(`{"status":{"storedVersions":["v1alpha1","v1"]}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(w.removeAll(), "; "); !strings.Contains(notes, "keeps its conversion webhook") || !strings.Contains(notes, "v1alpha1") {
		t.Errorf("notes %q", notes)
	}
}
