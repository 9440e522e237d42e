// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// TestR31ClusterReplaced rebuilds clusters of Cluster API under the same name. One with the same Cluster is held; one with another Cluster is
// held, too, until the rollout permits to abandon the former one: then its BundleDeployment is replaced.
func TestR31ClusterReplaced(t *testing.T) {
	r := newRig(t)
	r.now = r.now.Add(-24 * time.Hour) // before the API server creates the Clusters: none was ready since
	r.publish("v1")
	if err := installation.Account(t.Context(), shared.admin, r.namespace, "deployer", "cluster-admin", ""); err != nil {
		t.Fatal(err)
	}
	if err := installation.InstallKind(t.Context(), shared.admin, "testdata/clusters.cluster.x-k8s.io.yaml"); err != nil {
		t.Fatal(err)
	}
	newCluster := func(on, ring string) *unstructured.Unstructured {
		return r.object(`{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: ` + on + `, labels: {ring: "` + ring + `"}}, spec: {}}`)
	}
	clusters := map[string]*unstructured.Unstructured{}
	for on, ring := range map[string]string{"c1": "one", "c2": "two", "c3": "two"} {
		clusters[on] = newCluster(on, ring)
		r.put(clusters[on])
	}
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Clusters = []v1alpha1.RolloutClusters{{ClusterAPI: &v1alpha1.ClusterAPIClusters{Selector: metav1.LabelSelector{}}}}
	})
	r.until("v1 complete", complete("v1"))
	for on, child := range r.children() {
		if got := child.Annotations[v1alpha1.RolloutClusterAnnotation]; got == "" || got != string(clusters[on].GetUID()) {
			t.Errorf("%s was started with the Cluster %q, want %s", on, got, clusters[on].GetUID())
		}
	}

	// c2 has another control plane, c3 another Cluster as well. A deployment controller would release neither by itself.
	if err := shared.admin.Delete(t.Context(), clusters["c3"]); err != nil {
		t.Fatal(err)
	}
	clusters["c3"] = newCluster("c3", "two")
	r.put(clusters["c3"])
	former := map[string]*v1alpha1.BundleDeployment{}
	for _, on := range []string{"c2", "c3"} {
		r.frozen[on] = true
		former[on] = r.reachAnother(on)
	}
	r.publish("v2")
	object := r.until("the second wave is held", because(v1alpha1.ReasonHeld))
	if len(object.Status.Worst) != 2 || object.Status.Clusters.Held != 2 {
		t.Errorf("status.worst: %+v", object.Status.Worst)
	}
	for on, remedy := range map[string]string{"c2": v1alpha1.AbandonAnnotation, "c3": "spec.removal.whenClusterGone"} {
		at := slices.IndexFunc(object.Status.Worst, func(one v1alpha1.RolloutClusterProblem) bool { return one.Cluster == on })
		if at < 0 || object.Status.Worst[at].Reason != v1alpha1.ReasonTargetChanged || !strings.Contains(object.Status.Worst[at].Message, remedy) {
			t.Errorf("%s: %+v, want the remedy %s", on, object.Status.Worst, remedy)
		}
	}
	rolledOut := apimeta.FindStatusCondition(object.Status.Conditions, v1alpha1.RolledOutCondition)
	if !strings.Contains(rolledOut.Message, "2 clusters are another one than before, such as c2") {
		t.Errorf("RolledOut: %s", rolledOut.Message)
	}
	if reasons := r.reasons("ClusterRebuilt"); reasons != 2 {
		t.Errorf("%d events ClusterRebuilt", reasons)
	}
	r.steps(3)
	for on, child := range r.children() {
		if was := former[on]; was != nil && child.ResourceVersion != was.ResourceVersion {
			t.Errorf("the BundleDeployment of %s was written", on)
		}
	}

	r.edit(func(o *v1alpha1.BundleRollout) {
		o.Spec.Suspend = true
		o.Spec.Removal.WhenClusterGone = v1alpha1.GoneClusterAbandon
	})
	r.steps(3)
	if !r.children()["c3"].DeletionTimestamp.IsZero() {
		t.Error("a suspended rollout replaced a cluster")
	}
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Suspend = false })
	r.steps(3)
	left := r.children()
	gone := left["c3"]
	if gone == nil || gone.DeletionTimestamp.IsZero() || gone.Annotations[v1alpha1.AbandonAnnotation] != "now" || gone.Spec.DeletionPolicy != v1alpha1.DeletionOrphan {
		t.Fatalf("the BundleDeployment of c3 is not being abandoned: %+v", gone)
	}
	if left["c2"].ResourceVersion != former["c2"].ResourceVersion {
		t.Error("the BundleDeployment of c2, of which nothing proves that it was rebuilt, was written")
	}
	r.release(gone)
	delete(r.frozen, "c3")
	object = r.until("c3 is updated", func(o *v1alpha1.BundleRollout) bool { return o.Status.Clusters.Updated == 2 })
	fresh := r.children()["c3"]
	if fresh.UID == gone.UID || fresh.Spec.DeletionPolicy == v1alpha1.DeletionOrphan || fresh.Annotations[v1alpha1.RolloutClusterAnnotation] != string(clusters["c3"].GetUID()) {
		t.Errorf("the new BundleDeployment of c3: %+v", fresh.ObjectMeta)
	}
	if r.versions("v1", "v2")["c3"] != "v2" || why(object) != v1alpha1.ReasonHeld || r.reasons("ClustersReplaced") != 1 {
		t.Errorf("c3 has %s, the rollout is %s, %d events ClustersReplaced", r.versions("v1", "v2")["c3"], why(object), r.reasons("ClustersReplaced"))
	}

	// The remedy for c2: its BundleDeployment is deleted by hand.
	if err := shared.admin.Delete(t.Context(), r.children()["c2"]); err != nil {
		t.Fatal(err)
	}
	r.release(r.children()["c2"])
	delete(r.frozen, "c2")
	r.until("v2 complete", complete("v2"))
}

// TestR31KubeConfigCorrected has a kubeconfig in spec.clusters that leads to another cluster. When the entry is corrected, and nothing else, the
// BundleDeployment gets it, and the cluster is held no longer.
func TestR31KubeConfigCorrected(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	entry := func(secret string) v1alpha1.RolloutClusters {
		one := cluster("c2", "two")
		one.Cluster.ClusterReference = v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: secret}}}
		return one
	}
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Clusters = []v1alpha1.RolloutClusters{cluster("c1", "one"), entry("right")}
	})
	r.until("v1 complete", complete("v1"))
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Clusters[1] = entry("wrong") })
	r.until("the wrong kubeconfig is used", func(*v1alpha1.BundleRollout) bool {
		return r.children()["c2"].Spec.Target.ClusterReference.KubeConfig.SecretRef.Name == "wrong"
	})
	r.frozen["c2"] = true
	held := r.reachAnother("c2")
	r.publish("v2")
	r.until("the second wave is held", because(v1alpha1.ReasonHeld))
	r.steps(3)
	if r.children()["c2"].Generation != held.Generation {
		t.Error("the BundleDeployment of c2 was written while it was held")
	}
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Clusters[1] = entry("right") })
	r.until("the kubeconfig is corrected", func(*v1alpha1.BundleRollout) bool {
		return r.children()["c2"].Spec.Target.ClusterReference.KubeConfig.SecretRef.Name == "right"
	})
	object := r.until("it is tried", func(o *v1alpha1.BundleRollout) bool { return o.Status.Clusters.Updating == 1 })
	if object.Status.Clusters.Held != 0 || why(object) != v1alpha1.ReasonUpdating {
		t.Errorf("the corrected kubeconfig was not tried yet: %s, %+v", why(object), object.Status.Clusters)
	}
	delete(r.frozen, "c2")
	r.until("v2 complete", complete("v2"))
}

// reachAnother reports that a cluster is another one than the one with the objects. Its BundleDeployment has the finalizer of the deployment controller.
func (r *rig) reachAnother(on string) *v1alpha1.BundleDeployment {
	r.t.Helper()
	child := r.children()[on]
	before := child.DeepCopy()
	controllerutil.AddFinalizer(child, v1alpha1.Finalizer)
	if err := shared.admin.Patch(r.t.Context(), child, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
	before = child.DeepCopy()
	apimeta.SetStatusCondition(&child.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTargetChanged})
	apimeta.SetStatusCondition(&child.Status.Conditions, metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTargetChanged})
	if err := shared.admin.Status().Patch(r.t.Context(), child, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
	return child
}

// release removes the finalizer, as the deployment controller does when a removal ends.
func (r *rig) release(child *v1alpha1.BundleDeployment) {
	r.t.Helper()
	before := child.DeepCopy()
	controllerutil.RemoveFinalizer(child, v1alpha1.Finalizer)
	if err := shared.admin.Patch(r.t.Context(), child, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

// reasons is how many events had a reason.
func (r *rig) reasons(reason string) int {
	r.events.mu.Lock()
	defer r.events.mu.Unlock()
	count := 0
	for _, one := range r.events.reasons {
		if one == reason {
			count++
		}
	}
	return count
}
