// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// M22: an object that an older CRD accepted affects no other object.
func TestM22StoredUnderAnotherCRD(t *testing.T) {
	r := newRig(t)
	namespace, other := controlplane.NewNamespace(t, r.cp), controlplane.NewNamespace(t, r.cp)
	content := []v1alpha1.Source{{ConfigMap: &v1alpha1.LocalReference{Name: "manifests"}}}
	manifests := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "manifests"}, Data: map[string]string{"a.yaml": "one"}}
	if err := r.admin.Create(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
	r.storeAnyInterval(t, namespace, "days", "1d")

	failed := r.unready(t, client.ObjectKey{Namespace: namespace, Name: "days"}, v1alpha1.ReasonInvalidSpec)
	if want := `spec.interval is "1d", which is no duration: write it as 90s, 10m or 1h30m`; conditions.GetMessage(failed, meta.ReadyCondition) != want ||
		!conditions.IsTrue(failed, meta.StalledCondition) || failed.Spec.Interval.Unread != `"1d"` {
		t.Errorf("got %s", describe(failed))
	}
	r.ready(t, r.create(t, other, "web", content, every(time.Hour)))
}

// storeAnyInterval creates a source with an interval that its CRD refuses, by removing
// the rules of the CRD for a moment.
func (r *rig) storeAnyInterval(t *testing.T, namespace, name, interval string) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := r.admin.Get(t.Context(), client.ObjectKey{Name: "bundlesources.satchel.dev"}, crd); err != nil {
		t.Fatal(err)
	}
	rules := r.setIntervalRules(t, crd, map[string]any{"type": "string"})
	defer r.setIntervalRules(t, crd, rules)
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"interval": interval, "sources": []any{map[string]any{"configMap": map[string]any{"name": "none"}}},
	}}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.BundleSourceKind))
	object.SetNamespace(namespace)
	object.SetName(name)
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return r.admin.Create(ctx, object.DeepCopy()) == nil, nil
	})
	if err != nil {
		t.Fatal("the CRD without rules still refuses the object")
	}
}

// setIntervalRules replaces the schema of spec.interval, and returns what it was.
func (r *rig) setIntervalRules(t *testing.T, crd *unstructured.Unstructured, rules map[string]any) map[string]any {
	t.Helper()
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	version, _ := versions[0].(map[string]any)
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "interval"}
	before, found, err := unstructured.NestedMap(version, path...)
	if err != nil || !found {
		t.Fatal("the CRD has no spec.interval")
	}
	if err := unstructured.SetNestedMap(version, maps.Clone(rules), path...); err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/versions", "value": versions}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context()) // also when the test has failed
	if err := r.admin.Patch(ctx, crd, client.RawPatch("application/json-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	return before
}
