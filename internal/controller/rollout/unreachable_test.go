// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestR30OutdatedStart has a cluster go out of reach before its start has ended: its BundleDeployment is moved to each newer revision meanwhile, and the
// other clusters do not wait for it.
func TestR30OutdatedStart(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Clusters = []v1alpha1.RolloutClusters{cluster("c1", "one"), cluster("c2", "two"), cluster("c3", "two")}
		spec.Strategy.Unreachable.After = v1alpha1.Duration{Duration: 2 * time.Second}
	})
	r.until("v1 complete", complete("v1"))
	r.publish("v2")
	r.frozen["c2"] = true
	r.until("c2 is started with v2", func(*v1alpha1.BundleRollout) bool { return r.versions("v1", "v2")["c2"] == "v2" })
	child := r.children()["c2"]
	before := child.DeepCopy()
	apimeta.SetStatusCondition(&child.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClusterUnreachable})
	if err := shared.admin.Status().Patch(t.Context(), child, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	r.until("c2 cannot be reached", func(o *v1alpha1.BundleRollout) bool { return o.Status.Clusters.Unreachable == 1 })
	for _, version := range []string{"v3", "v4"} {
		r.publish(version)
		object := r.until(version+" complete", complete(version))
		if got := r.versions("v1", "v2", "v3", "v4"); got["c2"] != version || object.Status.Clusters.Unreachable != 1 || object.Status.Clusters.Updated != 2 {
			t.Errorf("c2 gets %s when it is back, want %s; %+v", got["c2"], version, object.Status.Clusters)
		}
	}
	started := r.children()["c2"].Generation
	r.steps(3)
	if got := r.children()["c2"].Generation; got != started {
		t.Error("a cluster that cannot be reached is started again and again")
	}
	delete(r.frozen, "c2")
	r.until("c2 is back", func(o *v1alpha1.BundleRollout) bool { return o.Status.Clusters.Updated == 3 })
}
