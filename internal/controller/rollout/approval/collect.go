// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/approvals"
	"github.com/satchel-dev/satchel/internal/controller/shard"
)

// RetentionUsage is the help of the flag --approval-retention of the rollout controller.
const RetentionUsage = "How long a BundleApproval of a rollout is kept after it was used or has expired. Then it is deleted, if it has an expirationTime that is past, or satchel rollout approve created it. 0 for ever."

// Collector deletes decisions about the rollouts of a shard that have ended.
func (m Marker) Collector(part shard.Shard) *approvals.Collector {
	return &approvals.Collector{
		Client: m.Client, Live: m.Live, Manager: m.Manager,
		Rule: func(_ []v1alpha1.BundleApproval, now time.Time) approvals.Ended {
			return ending{m.Client, part, now}.of
		},
	}
}

// ending tells when decisions ended.
type ending struct {
	reader client.Reader
	shard  shard.Shard
	now    time.Time
}

// of is when a decision about a rollout ended; zero while it has not, or has to be kept. The first line that holds decides.
//
//	it is not about a rollout, or is being deleted           keep
//	another instance reconciles the rollout                  keep
//	the status of the rollout names it, or its plan          keep
//	it was used                                              then
//	it has expired                                           then
//	else                                                     keep
//
// A denial that has not expired is kept: the status of a rollout may be lost, and its plans come back then.
func (e ending) of(ctx context.Context, one *v1alpha1.BundleApproval) (time.Time, error) {
	if one.Spec.Rollout == "" || !one.DeletionTimestamp.IsZero() {
		return time.Time{}, nil
	}
	rollout := new(v1alpha1.BundleRollout)
	err := e.reader.Get(ctx, client.ObjectKey{Namespace: one.Namespace, Name: one.Spec.Rollout}, rollout)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return time.Time{}, fmt.Errorf("reading bundlerollout %s/%s: %w", one.Namespace, one.Spec.Rollout, err)
	case err == nil && (!e.shard.Owns(rollout) || refersTo(&rollout.Status, one)):
		return time.Time{}, nil
	case one.Status.ConsumedTime != nil:
		return one.Status.ConsumedTime.Time, nil
	case approvals.Expired(one, e.now):
		return one.Spec.ExpirationTime.Time, nil
	}
	return time.Time{}, nil
}

// refersTo tells whether the status has the decision, or its plan, in a wave, a removal or the history.
func refersTo(status *v1alpha1.BundleRolloutStatus, one *v1alpha1.BundleApproval) bool {
	if status.Removal != nil && status.Removal.Plan == one.Spec.Plan {
		return true
	}
	if status.Takeover != nil && status.Takeover.Plan == one.Spec.Plan {
		return true
	}
	for i := range status.Waves {
		if wave := &status.Waves[i]; wave.Plan == one.Spec.Plan || wave.Approval == one.Name || wave.EndApproval == one.Name {
			return true
		}
	}
	return slices.ContainsFunc(status.History, func(record v1alpha1.RolloutRecord) bool {
		return slices.ContainsFunc(record.Approvals, func(used v1alpha1.RolloutApproval) bool { return used.Name == one.Name })
	})
}
