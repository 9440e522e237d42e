// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestR41Redirected gives both clusters of a rollout another name: neither BundleDeployment is deleted before that of the other name has a plan; then
// it reaches the cluster as the other one does, whatever the limit, and is not abandoned.
func TestR41Redirected(t *testing.T) {
	secret := func(name string) v1alpha1.ClusterReference {
		return v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: name}}}
	}
	profile := v1alpha1.ClusterReference{ClusterProfileRef: &v1alpha1.ClusterProfileReference{Name: "a"}}
	for name, tc := range map[string]struct {
		from, to v1alpha1.ClusterReference
		removal  v1alpha1.RolloutRemoval
	}{
		"another Secret":                  {secret("a"), secret("b"), v1alpha1.RolloutRemoval{}},
		"the same Secret":                 {secret("a"), secret("a"), v1alpha1.RolloutRemoval{}},
		"a Secret for a ClusterProfile":   {profile, secret("b"), v1alpha1.RolloutRemoval{}},
		"Orphan":                          {secret("a"), secret("b"), v1alpha1.RolloutRemoval{Policy: v1alpha1.DeletionOrphan}},
		"clusters that are gone, abandon": {secret("a"), secret("b"), v1alpha1.RolloutRemoval{WhenClusterGone: v1alpha1.GoneClusterAbandon}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.publish("v1")
			entry := func(name, ring string, kubeConfig v1alpha1.ClusterReference) v1alpha1.RolloutClusters {
				one := cluster(name, ring)
				one.Cluster.ClusterReference = kubeConfig
				one.Cluster.ServiceAccountName = "by-" + name
				return one
			}
			r.create(func(spec *v1alpha1.BundleRolloutSpec) {
				spec.Removal = tc.removal
				spec.Clusters = []v1alpha1.RolloutClusters{entry("old1", "one", tc.from), entry("old2", "two", tc.from)}
			})
			r.until("v1 complete", complete("v1"))
			targets := map[string]string{"old1": "t1", "old2": "t2", "new1": "t1", "new2": "t2"}
			for _, on := range []string{"old1", "old2"} {
				r.change(on, func(d *v1alpha1.BundleDeployment) { d.Finalizers = []string{v1alpha1.Finalizer} })
				r.reached(on, targets[on], "")
			}
			for _, on := range []string{"new1", "new2"} {
				r.frozen[on] = true
			}
			r.edit(func(o *v1alpha1.BundleRollout) {
				o.Spec.Clusters = []v1alpha1.RolloutClusters{entry("new1", "one", tc.to), entry("new2", "two", tc.to)}
			})
			r.until("the new names are started", func(*v1alpha1.BundleRollout) bool { return len(r.children()) == 4 })
			r.now = r.now.Add(time.Minute)
			r.steps(3)
			object := r.get()
			if message := apimeta.FindStatusCondition(object.Status.Conditions, v1alpha1.RolledOutCondition).Message; !strings.Contains(message, "old1 is not removed before the cluster new1, which may be the same one, was reached") {
				t.Errorf("what the removal waits for is not said: %s", message)
			}
			for _, on := range []string{"old1", "old2"} {
				if child := r.children()[on]; !child.DeletionTimestamp.IsZero() {
					t.Fatalf("%s is removed although the new names were not reached", on)
				}
			}
			for _, on := range []string{"new1", "new2"} {
				r.reached(on, targets[on], v1alpha1.ReasonPlanRefused)
			}
			for _, number := range []string{"1", "2"} { // one after the other, as the limits of waves say
				from, to := "old"+number, "new"+number
				object = r.until(from+" is removed", func(*v1alpha1.BundleRollout) bool { return !r.children()[from].DeletionTimestamp.IsZero() })
				if condition(object, v1alpha1.RemovalHeldCondition) != "" || object.Status.Clusters.Failed != 0 || object.Status.RejectedRevision != "" {
					t.Errorf("removal %s, clusters %+v", condition(object, v1alpha1.RemovalHeldCondition), object.Status.Clusters)
				}
				child := r.children()[from]
				if !equality.Semantic.DeepEqual(child.Spec.Target.ClusterReference, tc.to) || child.Spec.Target.ServiceAccountName != "by-"+to || child.Annotations[v1alpha1.AbandonAnnotation] != "" {
					t.Errorf("%s: %+v %s %v", from, child.Spec.Target.ClusterReference, child.Spec.Target.ServiceAccountName, child.Annotations)
				}
				r.release(child)
				delete(r.frozen, to)
			}
			for _, on := range []string{"new1", "new2"} {
				r.reached(on, targets[on], "")
			}
			r.until("the new names are updated", func(o *v1alpha1.BundleRollout) bool { return o.Status.Clusters.Updated == 2 && len(r.children()) == 2 })
		})
	}
}

// TestR41LimitHolds: the limit of removals holds for clusters that no other name stands for.
func TestR41LimitHolds(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	limit := intstr.FromInt32(1)
	remote := func(name string) v1alpha1.RolloutClusters {
		one := cluster(name, "one")
		one.Cluster.ClusterReference = v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: name}}}
		return one
	}
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Removal.Limit = &limit
		spec.Clusters = []v1alpha1.RolloutClusters{remote("a"), remote("b"), remote("c"), remote("d")}
	})
	r.until("v1 complete", complete("v1"))
	for _, on := range []string{"a", "b", "c", "d"} {
		r.reached(on, "cluster-"+on, "")
	}
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Clusters = o.Spec.Clusters[:2] })
	r.steps(5)
	if len(r.children()) != 4 {
		t.Errorf("removed within the seconds in which another name may follow: %d are left", len(r.children()))
	}
	r.now = r.now.Add(time.Minute)
	r.until("the removal is held", func(o *v1alpha1.BundleRollout) bool { return condition(o, "RemovalHeld") == "True Held" })
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Removal.Limit = nil })
	if r.steps(3); len(r.children()) != 4 {
		t.Errorf("%d are left", len(r.children()))
	}
}

// reached reports which cluster a BundleDeployment reached, and why it is not ready; "" if it is.
func (r *rig) reached(on, target, reason string) {
	r.t.Helper()
	child := r.children()[on]
	before := child.DeepCopy()
	child.Status.Inventory = &v1alpha1.Inventory{Target: target}
	child.Status.Internal.Server = "server of " + target
	if reason != "" {
		child.Status.ObservedGeneration = child.Generation
		for kind, status := range map[string]metav1.ConditionStatus{"Ready": metav1.ConditionFalse, "Stalled": metav1.ConditionTrue} {
			apimeta.SetStatusCondition(&child.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(r.now)})
		}
	}
	if err := shared.admin.Status().Patch(r.t.Context(), child, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}
