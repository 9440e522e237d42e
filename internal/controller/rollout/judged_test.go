// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestR32Kstatus has Flux judge the statuses that the controller writes: in progress until a first revision is complete, also while it waits; then
// current while it waits by plan; failed only when a user has to act.
func TestR32Kstatus(t *testing.T) {
	r := newRig(t)
	never := v1alpha1.RolloutWindow{Name: "never", Kind: v1alpha1.WindowAllow, Schedule: "0 0 30 2 *", Duration: v1alpha1.Duration{Duration: time.Hour}}
	r.publish("v1")
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.DeletionPolicy = v1alpha1.DeletionDelete
		spec.Strategy.Waves[0].Approval = v1alpha1.WaveApprovalAfter
		spec.Strategy.Waves[0].MaxFailures = new(intstr.FromInt32(0))
	})
	judge := func(what string, want status.Status) {
		t.Helper()
		object := r.get()
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		got, err := status.Compute(&unstructured.Unstructured{Object: content})
		if err != nil || got.Status != want {
			t.Errorf("%s: %v, %v, want %s; the rollout is %s, Ready %s", what, got, err, want, why(object), condition(object, "Ready"))
		}
	}
	judge("new", status.InProgressStatus)
	r.until("the first wave is updating", because(v1alpha1.ReasonUpdating))
	judge("updating", status.InProgressStatus)
	r.until("the first approval", because(v1alpha1.ReasonApprovalPending))
	judge("waiting for an approval, first", status.InProgressStatus)
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Suspend = true })
	r.until("suspended", because(v1alpha1.ReasonSuspended))
	judge("suspended, first", status.InProgressStatus)
	r.edit(func(o *v1alpha1.BundleRollout) {
		o.Spec.Suspend = false
		o.Spec.Strategy.Waves[0].Approval = v1alpha1.WaveApprovalNone
	})
	r.until("v1 complete", complete("v1"))
	judge("complete", status.CurrentStatus)

	r.edit(func(o *v1alpha1.BundleRollout) { setWindows(o, never) })
	judge("changed", status.InProgressStatus)
	r.publish("v2")
	r.until("outside of the window", because(v1alpha1.ReasonOutsideWindow))
	judge("outside of the window", status.CurrentStatus)
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Suspend = true })
	r.until("suspended again", because(v1alpha1.ReasonSuspended))
	judge("suspended", status.CurrentStatus)
	r.edit(func(o *v1alpha1.BundleRollout) {
		o.Spec.Suspend = false
		setWindows(o)
		o.Spec.Strategy.Waves[0].Soak = v1alpha1.Duration{Duration: 10 * time.Second}
	})
	r.until("soaking", because(v1alpha1.ReasonSoaking))
	judge("soaking", status.CurrentStatus)
	r.until("v2 complete", complete("v2"))

	r.bad["c1"+digestOf("v3")] = true
	r.publish("v3")
	r.until("halted", because(v1alpha1.ReasonMaxFailuresExceeded))
	judge("failed", status.FailedStatus)
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Strategy.OnFailure = v1alpha1.RolloutRollback })
	r.until("rolled back", because(v1alpha1.ReasonRevisionRejected))
	judge("rolled back", status.FailedStatus)

	if err := shared.admin.Delete(t.Context(), r.get()); err != nil {
		t.Fatal(err)
	}
	_ = r.step()
	judge("being deleted", status.TerminatingStatus)
}

// setWindows sets the windows of all waves.
func setWindows(o *v1alpha1.BundleRollout, windows ...v1alpha1.RolloutWindow) {
	for i := range o.Spec.Strategy.Waves {
		o.Spec.Strategy.Waves[i].Windows = windows
	}
}
