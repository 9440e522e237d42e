// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestR39NamespaceDeleted deletes the namespace of a rollout in the middle of a run, with everything in it, as the API server's namespace
// controller does: the rollout is released, and nothing is created again.
func TestR39NamespaceDeleted(t *testing.T) {
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionOrphan, v1alpha1.DeletionDelete} {
		t.Run(string(policy), func(t *testing.T) {
			r := newRig(t)
			r.publish("v1")
			r.create(func(spec *v1alpha1.BundleRolloutSpec) { spec.DeletionPolicy = policy })
			r.until("v1 complete", complete("v1"))
			r.publish("v2")
			r.until("the first wave has v2", func(*v1alpha1.BundleRollout) bool { return r.versions("v2")["c1"] != "" })
			if err := shared.admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}); err != nil {
				t.Fatal(err)
			}
			for _, kind := range []client.Object{
				new(v1alpha1.BundleApproval), new(v1alpha1.BundleSource), new(appsv1.ControllerRevision), new(corev1.ServiceAccount),
				new(v1alpha1.BundleDeployment), new(v1alpha1.BundleRollout),
			} {
				if err := shared.admin.DeleteAllOf(t.Context(), kind, client.InNamespace(r.namespace)); err != nil {
					t.Fatal(err)
				}
				_ = r.step() // in between
			}
			for range 10 {
				_ = r.step()
			}
			var left v1alpha1.BundleRolloutList
			if err := shared.admin.List(t.Context(), &left, client.InNamespace(r.namespace)); err != nil || len(left.Items) > 0 {
				t.Errorf("%d rollouts are stuck, %v", len(left.Items), err)
			}
			if children := r.children(); len(children) > 0 {
				t.Errorf("created again: %v", children)
			}
		})
	}
}

// TestR31ClusterRebuilt has another cluster under the name of one: it is held, and nothing is written for it, while all others are updated.
func TestR31ClusterRebuilt(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create()
	r.until("v1 complete", complete("v1"))
	rebuilt := r.children()["c5"]
	before := rebuilt.DeepCopy()
	apimeta.SetStatusCondition(&rebuilt.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTargetChanged})
	apimeta.SetStatusCondition(&rebuilt.Status.Conditions, metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTargetChanged})
	if err := shared.admin.Status().Patch(t.Context(), rebuilt, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	r.frozen["c5"] = true
	r.publish("v2")
	object := r.until("the last wave is held", because(v1alpha1.ReasonHeld))
	if object.Status.Clusters.Held != 1 || object.Status.Clusters.Failed != 0 {
		t.Errorf("clusters: %+v", object.Status.Clusters)
	}
	r.steps(5)
	if after := r.children()["c5"]; after.ResourceVersion != rebuilt.ResourceVersion || r.versions("v1", "v2")["c5"] != "v1" {
		t.Error("the BundleDeployment of the rebuilt cluster was written")
	}
	updated := 0
	for _, version := range r.versions("v2") {
		if version == "v2" {
			updated++
		}
	}
	if updated != 5 || !slices.Contains(r.starts(), "c6") {
		t.Errorf("%d clusters have v2", updated)
	}
}

// TestR30BackAfterTwoRevisions has a cluster of the second wave out of reach for two revisions: the waves do not wait for it, and when it is back
// it gets the newest revision and not the one in between.
func TestR30BackAfterTwoRevisions(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create()
	r.until("v1 complete", complete("v1"))
	report := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		child := r.children()["c3"]
		before := child.DeepCopy()
		apimeta.SetStatusCondition(&child.Status.Conditions, metav1.Condition{Type: "Ready", Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(r.now)})
		if err := shared.admin.Status().Patch(t.Context(), child, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	report(metav1.ConditionFalse, v1alpha1.ReasonClusterUnreachable)
	r.frozen["c3"] = true
	r.steps(1)
	const week = 7 * 24 * 60 * 60
	r.now = r.now.Add(week * 1_000_000_000)
	for _, version := range []string{"v2", "v3"} {
		r.publish(version)
		r.until(version+" complete", complete(version))
		if got := r.get().Status.Clusters; got.Unreachable != 1 || got.Failed != 0 {
			t.Errorf("%s: clusters %+v", version, got)
		}
		if got := r.versions("v1", "v2", "v3")["c3"]; got != "v1" {
			t.Errorf("c3 got %s while it was out of reach", got)
		}
	}
	report(metav1.ConditionTrue, "Succeeded")
	delete(r.frozen, "c3")
	seen := map[string]bool{}
	r.check = func() { seen[r.versions("v1", "v2", "v3")["c3"]] = true }
	r.until("c3 is updated", func(o *v1alpha1.BundleRollout) bool { return o.Status.Clusters.Updated == 6 })
	if seen["v2"] || !seen["v3"] {
		t.Errorf("c3 had %v", seen)
	}
}
