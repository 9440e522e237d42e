// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/tests/workspace"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func grants(rules []authorizationv1.ResourceRule) bool {
	return slices.ContainsFunc(rules, func(r authorizationv1.ResourceRule) bool { return slices.Contains(r.Resources, "*") })
}

// remove makes one attempt, as the controller does.
func (w *world) remove() removal.Removed {
	w.T.Helper()
	removed, err := removal.Remove(w.T.Context(), w.Client, w.Owner, w.Inventory, w.RemovalOptions())
	if err != nil {
		w.T.Fatal(err)
	}
	w.Inventory = removed.Inventory
	return removed
}

// removeAll repeats attempts until the removal is done, and collects the notes.
func (w *world) removeAll() []string {
	w.T.Helper()
	var notes []string
	workspace.Eventually(w.T, "the removal", func() error {
		removed := w.remove()
		notes = append(notes, removed.Notes...)
		if !removed.Done() {
			return fmtError(strings.Join(remainingWords(removed), "; "))
		}
		return nil
	})
	return notes
}

func remainingWords(removed removal.Removed) []string {
	var words []string
	for _, remaining := range removed.Waiting {
		words = append(words, remaining.String())
	}
	for _, denied := range removed.Denied {
		words = append(words, denied.Error())
	}
	return words
}

// An installed application is removed to the last object.
func TestF22RemoveAll(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(application)
	if notes := w.removeAll(); len(notes) > 0 {
		t.Errorf("left behind: %v", notes)
	}
	if got := w.Plan(w.Objects(application)).Count(plan.Create); got != 7 {
		t.Errorf("%d of 7 objects are gone", got)
	}
}

// The operator's custom resources are deleted first and waited for, and their finalizers
// are named; the CRD stays, orphaned, and the next deployment adopts it.
func TestF22CustomResourcesFirst(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	bundle := w.widgets()
	w.MustApply(strings.ReplaceAll(bundle, "singular: widget", "singular: widget, shortNames: [wdg]"))
	widgets := w.Dynamic.Resource(w.widget()).Namespace(w.Namespace)
	hold := []byte(`{"metadata":{"finalizers":["example.org/hold"]}}`)
	if _, err := widgets.Patch(t.Context(), "first", types.MergePatchType, hold, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		start := time.Now()
		removed := w.remove()
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("an attempt took %s: it waits", took)
		}
		words := strings.Join(remainingWords(removed), "; ")
		if removed.Done() || !strings.Contains(words, "first") || !strings.Contains(words, "example.org/hold") {
			t.Errorf("remaining %q: want it to wait for the finalizer", words)
		}
		if w.data("settings") == nil {
			t.Fatal("later stages went before the custom resource")
		}
	}
	if _, err := widgets.Patch(t.Context(), "first", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(w.removeAll(), "; ")
	if !strings.Contains(notes, "CustomResourceDefinition.apiextensions.k8s.io widgets.") || !strings.Contains(notes, "is kept") {
		t.Errorf("notes %q do not say that the CRD is kept", notes)
	}
	crd, err := w.definition()
	if err != nil {
		t.Fatal(err)
	}
	if crd.GetAnnotations()[inventory.AnnotationOrphaned] != w.Namespace+"/app" || len(crd.GetLabels()) > 0 {
		t.Errorf("annotations %v, labels %v: want it marked and free of our labels", crd.GetAnnotations(), crd.GetLabels())
	}
	other := w.second()
	other.MustApply(bundle)
	crd, err = w.definition()
	if err != nil {
		t.Fatal(err)
	}
	if _, marked := crd.GetAnnotations()[inventory.AnnotationOrphaned]; marked || crd.GetLabels()[inventory.LabelDeployment] != "other" {
		t.Errorf("annotations %v, labels %v: want it adopted", crd.GetAnnotations(), crd.GetLabels())
	}
	for _, entry := range crd.GetManagedFields() {
		if entry.Manager == inventory.OrphanManager || entry.Manager == w.Owner.Manager() {
			t.Errorf("fields stay with %s", entry.Manager)
		}
	}
	// Adopted completely: objects that the next revision does not contain were deleted.
	if names, _, _ := unstructured.NestedStringSlice(crd.Object, "spec", "names", "shortNames"); len(names) > 0 {
		t.Errorf("short names %v stay", names)
	}
	if p := other.Plan(other.Objects(bundle)); !p.Quiet() {
		t.Errorf("after it was adopted: %s", p.Summary())
	}
}

const ownNamespace = `
apiVersion: v1
kind: Namespace
metadata: {name: NS-own}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside, namespace: NS-own}
data: {colour: blue}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS-own}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:v1"}]}
`

func (w *world) own() string {
	w.T.Helper()
	name := w.Namespace + "-own"
	w.T.Cleanup(func() {
		_ = w.Admin.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	return name
}

// A namespace of the bundle is deleted last, when its objects are gone.
func TestF22EmptyNamespace(t *testing.T) {
	t.Parallel() // waits for a namespace to go, which begins after 5 s
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Rule("*", "*", "*"))
	own := w.own()
	w.MustApply(ownNamespace)
	w.removeAll()
	workspace.Eventually(t, "the namespace goes", func() error {
		_, err := w.Admin.CoreV1().Namespaces().Get(t.Context(), own, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmtError("it is there")
		}
		return nil
	})
}

// A namespace with objects of other owners stays, orphaned, and is adopted
// again later.
func TestF22InhabitedNamespace(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Rule("*", "*", "*"))
	own := w.own()
	w.MustApply(ownNamespace)
	lodger := w.Objects(`{apiVersion: v1, kind: ConfigMap, metadata: {name: lodger}}`)[0]
	if _, err := w.Dynamic.Resource(configMaps).Namespace(own).Create(t.Context(), lodger, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(w.removeAll(), "; ")
	if !strings.Contains(notes, "Namespace "+own+" is kept") || !strings.Contains(notes, "ConfigMap lodger lives in it") {
		t.Errorf("notes %q", notes)
	}
	w.MustApply(ownNamespace)
	found, err := w.Admin.CoreV1().Namespaces().Get(t.Context(), own, metav1.GetOptions{})
	if err != nil || found.Labels[inventory.LabelDeployment] != "app" || found.Annotations[inventory.AnnotationOrphaned] != "" {
		t.Errorf("not adopted again: %v %v", found, err)
	}
}

// An account that may not list the objects of a namespace does not delete it.
func TestF22NamespaceNotToBeSeen(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Rule("", "namespaces,configmaps", "*"))
	own := w.own()
	w.MustApply(`{apiVersion: v1, kind: Namespace, metadata: {name: NS-own}}`)
	notes := strings.Join(w.removeAll(), "; ")
	if !strings.Contains(notes, "may not list") {
		t.Errorf("notes %q", notes)
	}
	if _, err := w.Admin.CoreV1().Namespaces().Get(t.Context(), own, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// createNamespace creates the install namespace as the account, and it stays.
func TestCreateNamespace(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Rule("*", "*", "*"))
	own := w.own()
	observing := observe.Request{Owner: w.Owner, Desired: w.Objects(workspace.TwoMaps), InstallNamespace: own, CreateNamespace: true}
	in, err := observe.Cluster(t.Context(), w.Client, observing)
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Make(in)
	result, err := apply.Apply(t.Context(), w.Client, p, apply.Options{})
	if err != nil || !result.Complete() || len(p.Violations) > 0 {
		t.Fatal(err, p.Violations, result.Errors())
	}
	w.Inventory = result.Inventory
	if w.Inventory.Len() != 2 {
		t.Errorf("the inventory lists %v", w.Inventory.Entries)
	}
	w.removeAll()
	found, err := w.Admin.CoreV1().Namespaces().Get(t.Context(), own, metav1.GetOptions{})
	if err != nil || found.DeletionTimestamp != nil {
		t.Errorf("the namespace goes: %v", err)
	}
}

// While the account lacks its permissions nothing is released, and all remaining
// objects are named.
func TestF22RightsLost(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	bindings := w.Admin.RbacV1().RoleBindings(w.Namespace)
	if err := bindings.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	workspace.Eventually(t, "the rights are gone", func() error {
		status, err := w.Client.Rules(t.Context(), w.Namespace)
		if err == nil && grants(status.ResourceRules) {
			return fmtError("still there")
		}
		return err
	})
	removed := w.remove()
	if removed.Done() || removed.Inventory.Len() != 2 || len(removed.Denied) != 2 {
		t.Errorf("got %+v", removed)
	}
	w.Grant("installer", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"*"}})
	w.removeAll()
}
