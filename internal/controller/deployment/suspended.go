// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/settle"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// suspended changes nothing on the cluster. Certificates of webhooks are not renewed either: before the first of them
// expires, the status and an event warn.
func (r *Reconciler) suspended(ctx context.Context, s *state) (ctrl.Result, error) {
	markSuspended(s.Object)
	key := s.Key()
	r.memory.Forget(key)
	r.unwatch(key)
	pause := settle.WarnSuspended(s.settling(nil))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if failed := s.Write(ctx, r.writer); failed != nil {
		return r.backoff.Conflict(key, failed)
	}
	r.backoff.Succeeded(key)
	r.settle.EmitCertificates(s.settling(nil))
	return ctrl.Result{RequeueAfter: pause}, nil
}

// markSuspended updates the status of a suspended deployment.
func markSuspended(d *v1alpha1.BundleDeployment) {
	settle.MarkHandled(d)
	conditions.Delete(d, meta.ReconcilingCondition)
	if conditions.Get(d, meta.ReadyCondition) == nil {
		pipeline.SetCondition(d, meta.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonSuspended,
			"suspended before the first revision was applied: set spec.suspend to false")
	}
}
