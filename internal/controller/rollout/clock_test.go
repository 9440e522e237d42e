// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestR35ClockIsSet sets the clock while a cluster is updated and does not become ready: it is overdue when the deadline has passed, no earlier, and not
// when the clock shows the former time again.
func TestR35ClockIsSet(t *testing.T) {
	for name, by := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.publish("v1")
			r.create(func(spec *v1alpha1.BundleRolloutSpec) {
				spec.Template.Spec = apiextensionsv1.JSON{Raw: []byte(`{"serviceAccountName":"deployer","health":{"timeout":"10s"}}`)}
				spec.Strategy.ProgressDeadline = v1alpha1.Duration{Duration: 30 * time.Second}
			})
			r.until("v1 complete", complete("v1"))
			r.publish("v2")
			r.slow["c1"] = true
			r.until("c1 is updated", func(o *v1alpha1.BundleRollout) bool { return o.Status.Clusters.Updating == 1 })
			child := r.children()["c1"]
			before := child.DeepCopy()
			child.Status.ObservedGeneration = child.Generation
			apimeta.SetStatusCondition(&child.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Faked"})
			if err := shared.admin.Status().Patch(t.Context(), child, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			r.now, r.set = r.now.Add(by), r.set+by
			r.steps(20)
			if object := r.get(); object.Status.Clusters.Failed != 0 {
				t.Errorf("20 seconds later: %s, %+v", why(object), object.Status.Clusters)
			}
			began := r.now
			r.until("c1 is overdue", because(v1alpha1.ReasonMaxFailuresExceeded))
			if took := r.now.Sub(began); took > 20*time.Second {
				t.Errorf("c1 was overdue %s later", took)
			}
		})
	}
}
