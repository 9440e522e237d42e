// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Index indexes decisions by their deployment in the cache, like the
// selectable field in the API server.
func Index(mgr ctrl.Manager) error {
	return mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.BundleApproval{}, decisionField, func(object client.Object) []string {
		if decision, ok := object.(*v1alpha1.BundleApproval); ok && decision.Spec.Deployment != "" { // else it is about a rollout
			return []string{decision.Spec.Deployment}
		}
		return nil
	})
}

// Wake is the deployment that a decision is about.
func Wake(_ context.Context, object client.Object) []reconcile.Request {
	decision, ok := object.(*v1alpha1.BundleApproval)
	if !ok || decision.Spec.Deployment == "" {
		return nil // those of rollouts are read by the rollout controller
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: decision.Namespace, Name: decision.Spec.Deployment}}}
}

// Changed tells whether a decision about a held prune was made or withdrawn since a status was written. A plan that waits
// as a whole is planned in full in any case.
func (a Approvals) Changed(ctx context.Context, d, before *v1alpha1.BundleDeployment, now time.Time) (bool, error) {
	pending := conditions.Get(before, v1alpha1.ApprovalPendingCondition)
	if pending == nil || before.Status.Plan == nil {
		return false, nil
	}
	known := &State{Digest: before.Status.Plan.Digest}
	if err := a.decisions(ctx, d, now, known); err != nil {
		return false, err
	}
	return known.approved != nil && known.Denied == nil || (known.Denied != nil) != (pending.Reason == v1alpha1.ReasonApprovalDenied), nil
}
