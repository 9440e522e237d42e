// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/spec"
)

// keepingClient is the client that corrects drift of the applied revision while a newer plan
// fails. Where plans need an approval, it impersonates the ServiceAccount of the approved plan
// until the newer plan is approved, also if the reconcile ends before that plan is known, as
// during its conversion.
func (r *Reconciler) keepingClient(ctx context.Context, s *state, err error) (*tenant.Client, error) {
	if awaitsApproval(err) {
		return r.approvedClient(ctx, s)
	}
	if isAfter(err, stepApprove) {
		return s.resolved.access.Client, nil
	}
	required, err := r.labels.Required(ctx, r.APIReader, s.object.Namespace)
	if err != nil || !required.Approval && s.object.Spec.ApprovalModeOrDefault() == v1alpha1.ApprovalAutomatic {
		return s.resolved.access.Client, err
	}
	return r.approvedClient(ctx, s)
}

// approvedClient is the client that impersonates the ServiceAccount for which the executed plan was
// approved. A proposed other ServiceAccount is not used.
func (r *Reconciler) approvedClient(ctx context.Context, s *state) (*tenant.Client, error) {
	record := r.proven(s.object)
	if record == nil || len(elsewhere(record, &s.object.Spec)) == 0 {
		return s.resolved.access.Client, nil
	}
	as := s.object.DeepCopy()
	as.Spec.ServiceAccountName, as.Spec.RemoteServiceAccountName, as.Spec.KubeConfig = record.ServiceAccountName, record.RemoteServiceAccountName, record.KubeConfig
	approved, err := r.accounts().Find(ctx, as)
	if err != nil {
		return nil, err
	}
	target, err := r.accounts().Identify(ctx, as, approved)
	if err == nil && target != s.listed.inventory.Target {
		err = fmt.Errorf("the kubeconfig for which the executed plan was approved leads to another cluster now")
	}
	return approved.Client, err
}

// allowedPruning says whether a removal deletes or orphans objects: where plans need an
// approval, as was approved, unless the spec deletes less.
func (r *Reconciler) allowedPruning(ctx context.Context, s *state) (plan.Pruning, error) {
	allowed, record := spec.Pruning(&s.object.Spec), r.proven(s.object)
	required, err := r.labels.Required(ctx, r.APIReader, s.object.Namespace)
	if err != nil || !required.Approval && s.object.Spec.ApprovalModeOrDefault() == v1alpha1.ApprovalAutomatic {
		return allowed, err
	}
	allowed.Definitions = allowed.Definitions && record != nil && record.DeletesDefinitions
	allowed.Orphan = allowed.Orphan || record != nil && record.DeletionPolicy == v1alpha1.DeletionOrphan
	return allowed, nil
}
