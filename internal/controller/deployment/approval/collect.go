// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/approvals"
	"github.com/satchel-dev/satchel/internal/controller/shard"
)

// RetentionUsage is the help of the flag --approval-retention of the deployment controller.
const RetentionUsage = "How long a BundleApproval is kept after it was used, has expired, or denies a plan that another one replaced. Then it is deleted, if it has an expirationTime that is past, or satchel approve created it. 0 for ever."

// Collector deletes decisions about the deployments of a shard that have ended.
func (a Approvals) Collector(part shard.Shard) *approvals.Collector {
	return &approvals.Collector{
		Client: a.Client, Live: a.Live, Manager: a.Manager,
		Rule: func(all []v1alpha1.BundleApproval, now time.Time) approvals.Ended {
			return ending{a, part, validPlans(all, now), now}.of
		},
	}
}

// planOf is a plan in a namespace.
type planOf struct{ namespace, digest string }

// validPlans are the plans with an approval that was not used and has not expired.
func validPlans(all []v1alpha1.BundleApproval, now time.Time) map[planOf]bool {
	valid := map[planOf]bool{}
	for i := range all {
		if one := &all[i]; allows(one, one.Spec.Plan) && !approvals.Expired(one, now) {
			valid[planOf{one.Namespace, one.Spec.Plan}] = true
		}
	}
	return valid
}

// ending tells when decisions ended.
type ending struct {
	Approvals
	shard shard.Shard
	valid map[planOf]bool
	now   time.Time
}

// of is when a decision ended; zero while it has not, or has to be kept. The first line that holds decides.
//
//	it is about a rollout, which may still need it           keep
//	another instance reconciles the deployment               keep
//	the status of the deployment refers to it                keep
//	it was used                                              then
//	it has expired                                           then
//	it denies, and another plan was executed since           then, unless an approval of the denied plan would become valid
//	else                                                     keep
func (e ending) of(ctx context.Context, one *v1alpha1.BundleApproval) (time.Time, error) {
	if one.Spec.Deployment == "" {
		return time.Time{}, nil
	}
	d := new(v1alpha1.BundleDeployment)
	err := e.Client.Get(ctx, client.ObjectKey{Namespace: one.Namespace, Name: one.Spec.Deployment}, d)
	switch {
	case apierrors.IsNotFound(err):
		d = nil
	case err != nil:
		return time.Time{}, fmt.Errorf("reading bundledeployment %s/%s: %w", one.Namespace, one.Spec.Deployment, err)
	case !e.shard.Owns(d) || refersTo(d, one):
		return time.Time{}, nil
	}
	switch {
	case !one.DeletionTimestamp.IsZero():
	case one.Status.ConsumedTime != nil:
		return one.Status.ConsumedTime.Time, nil
	case approvals.Expired(one, e.now):
		return one.Spec.ExpirationTime.Time, nil
	case one.Spec.Decision == v1alpha1.DecisionDeny && d != nil && !e.valid[planOf{one.Namespace, one.Spec.Plan}]:
		if record := e.Proven(d); record != nil && record.StartTime.After(one.CreationTimestamp.Time) {
			return record.StartTime.Time, nil // the digest of a plan contains the plan before it, so the denied one does not come back
		}
	}
	return time.Time{}, nil
}

// refersTo tells whether a status has the decision as its pending or executed plan, the plan before that, or in its history.
func refersTo(d *v1alpha1.BundleDeployment, one *v1alpha1.BundleApproval) bool {
	if d.Status.Plan != nil && d.Status.Plan.Digest == one.Spec.Plan {
		return true
	}
	if record := d.Status.Internal.Executed; record != nil && (record.Approval == one.Name || record.Plan == one.Spec.Plan || record.Base == one.Spec.Plan) {
		return true
	}
	for _, record := range d.Status.History {
		if record.Plan == one.Spec.Plan {
			return true
		}
	}
	return false
}
