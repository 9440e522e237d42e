// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// indexApprovals indexes decisions by their deployment in the cache, like the
// selectable field in the API server.
func indexApprovals(mgr ctrl.Manager) error {
	return mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.BundleApproval{}, decisionField, func(object client.Object) []string {
		if decision, ok := object.(*v1alpha1.BundleApproval); ok {
			return []string{decision.Spec.Deployment}
		}
		return nil
	})
}

// decided is the deployment that a decision is about.
func wakeDecided(_ context.Context, object client.Object) []reconcile.Request {
	decision, ok := object.(*v1alpha1.BundleApproval)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: decision.Namespace, Name: decision.Spec.Deployment}}}
}

// newlyDecided tells whether a decision about a held prune was made or withdrawn since
// the status was written. A plan that waits as a whole is planned in full in any case.
func (r *Reconciler) newlyDecided(ctx context.Context, s *state) (bool, error) {
	pending := conditions.Get(s.before, v1alpha1.ApprovalPendingCondition)
	if s.note.planned.held == nil || pending == nil || s.before.Status.Plan == nil {
		return false, nil
	}
	known := &consent{digest: s.before.Status.Plan.Digest}
	if err := r.decisions(ctx, s, known); err != nil {
		return false, err
	}
	return known.approved != nil && known.denied == nil || (known.denied != nil) != (pending.Reason == v1alpha1.ReasonApprovalDenied), nil
}
