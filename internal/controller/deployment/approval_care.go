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

// approvedClient is the client that acts as the account for which the plan in force was
// approved. While another one is proposed, nothing is done as that.
func (r *Reconciler) approvedClient(ctx context.Context, s *state) (*tenant.Client, error) {
	record := s.consent.record
	if record == nil || len(s.reachesElsewhere()) == 0 {
		return s.client, nil
	}
	as := &state{object: s.object.DeepCopy(), now: s.now}
	spec := &as.object.Spec
	spec.ServiceAccountName, spec.RemoteServiceAccountName, spec.KubeConfig = record.ServiceAccountName, record.RemoteServiceAccountName, record.KubeConfig
	if _, err := r.account(ctx, as); err != nil {
		return nil, err
	}
	target, err := r.identify(ctx, as)
	if err == nil && target != s.previous.Target {
		err = fmt.Errorf("the kubeconfig for which the plan in force was approved leads to another cluster now")
	}
	return as.client, err
}

// allowedPruning is how a removal lets objects go: where plans take an approval, as was
// approved, unless the spec is more careful.
func (r *Reconciler) allowedPruning(s *state) plan.Pruning {
	allowed := spec.Pruning(&s.object.Spec)
	if s.object.Spec.ApprovalModeOrDefault() == v1alpha1.ApprovalAutomatic {
		return allowed
	}
	record := r.proven(s.object)
	allowed.Definitions = allowed.Definitions && record != nil && record.DeletesDefinitions
	allowed.Orphan = allowed.Orphan || record != nil && record.DeletionPolicy == v1alpha1.DeletionOrphan
	return allowed
}
