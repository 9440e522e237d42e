// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// keepingClient is the client that corrects drift of the applied revision while a newer plan fails. Where plans need an approval, it
// impersonates the ServiceAccount of the approved plan until the newer plan is approved, also if the reconcile ends before that plan is
// known, as during its conversion.
func (r *Reconciler) keepingClient(ctx context.Context, s *state, err error) (*tenant.Client, error) {
	if !approval.AwaitsApproval(err) && isAfter(err, stage.StepApprove) {
		return s.resolved.Access.Client, nil
	}
	if demanded, err := r.Approvals().Demanded(ctx, s.Object); err != nil || !demanded {
		return s.resolved.Access.Client, err
	}
	return r.approvedClient(ctx, s)
}

// approvedClient is the client that impersonates the ServiceAccount for which the executed plan was
// approved. A proposed other ServiceAccount is not used.
func (r *Reconciler) approvedClient(ctx context.Context, s *state) (*tenant.Client, error) {
	record := r.Approvals().Proven(s.Object)
	if replaced := approval.LeadsElsewhere(record, &s.Object.Spec, s.resolved.Reach(&s.Subject)); len(replaced) > 0 {
		return nil, fmt.Errorf("%s; drift of the applied revision is corrected again when that is approved, or the former kubeconfig is back", replaced[0])
	}
	if record == nil || len(approval.Elsewhere(record, &s.Object.Spec)) == 0 {
		return s.resolved.Access.Client, nil
	}
	as := s.Object.DeepCopy()
	as.Spec.ServiceAccountName = record.ServiceAccountName
	as.Spec.Target.ServiceAccountName = record.RemoteServiceAccountName
	as.Spec.Target.ClusterReference = effective.ClusterReference(record.Cluster)
	approved, err := r.resolve.Accounts.Find(ctx, as)
	if err != nil {
		return nil, err
	}
	if approval.Reach(approved.Reach, s.HashKey) != record.KubeConfigReach {
		return nil, fmt.Errorf("the kubeconfig for which the executed plan was approved was replaced: drift of the applied revision is corrected again when the plan is approved")
	}
	target, err := r.resolve.Accounts.Identify(ctx, approved)
	if err == nil && target != s.listed.Current().Target() {
		err = fmt.Errorf("the kubeconfig for which the executed plan was approved leads to another cluster now")
	}
	return approved.Client, err
}
