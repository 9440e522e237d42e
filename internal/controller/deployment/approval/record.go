// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// decisionField selects the decisions about a deployment.
const decisionField = "spec.deployment"

// list returns the decisions about a deployment, the oldest first.
func (a Approvals) list(ctx context.Context, d *v1alpha1.BundleDeployment) ([]v1alpha1.BundleApproval, error) {
	var list v1alpha1.BundleApprovalList
	if err := a.Client.List(ctx, &list, client.InNamespace(d.Namespace), client.MatchingFields{decisionField: d.Name}); err != nil {
		return nil, fmt.Errorf("listing the bundleapprovals of bundledeployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.BundleApproval) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list.Items, nil
}

// decisions finds the bundleapprovals that approve and deny the plan. Those that have
// expired, were consumed or are being deleted do not count.
func (a Approvals) decisions(ctx context.Context, d *v1alpha1.BundleDeployment, now time.Time, c *State) error {
	all, err := a.list(ctx, d)
	if err != nil {
		return err
	}
	for i := range all {
		switch one := &all[i]; {
		case one.Spec.Plan != c.Digest || !one.DeletionTimestamp.IsZero():
		case one.Spec.ExpirationTime != nil && !now.Before(one.Spec.ExpirationTime.Time):
		case one.Spec.Decision == v1alpha1.DecisionDeny && c.Denied == nil:
			c.Denied = one
		case allows(one, c.Digest) && c.approved == nil:
			c.approved = one
		}
	}
	return nil
}

// Begin records that the plan is executed, and by which approval, unless that is
// recorded already.
func (a Approvals) Begin(c *State, d *v1alpha1.BundleDeployment, now time.Time) {
	if c == nil || c.settled() || c.underWay && c.record.Plan == c.Digest && c.approved == nil {
		return
	}
	spec := &d.Spec
	record := &v1alpha1.ExecutedPlan{
		Plan: c.Digest, Key: c.key, Terms: c.terms, Base: c.base, Generation: d.Generation, StartTime: pipeline.StatusTime(now),
		ServiceAccountName: spec.ServiceAccountName, RemoteServiceAccountName: spec.Target.ServiceAccountName, Cluster: effective.RemoteCluster(spec.Target.ClusterReference).DeepCopy(), KubeConfigReach: c.reach,
		DeletionPolicy: spec.DeletionPolicy, DeletesDefinitions: effective.DeletesCRDs(spec),
	}
	if c.record != nil {
		record.Grounds = c.record.Grounds
	}
	if c.approved != nil && c.Denied == nil {
		record.Approval, record.Grounds = c.approved.Name, c.demand.grounds
	}
	a.Prove(d, record)
	c.Begun, d.Status.Internal.Executed = true, record
}

// Consume marks the approval of the plan as consumed before anything is written, so that
// it allows nothing else. withdrawn says that the approval was withdrawn before that. After a
// crash, the approval is found by the record.
func (a Approvals) Consume(ctx context.Context, c *State, d *v1alpha1.BundleDeployment, now time.Time) (withdrawn, err error) {
	record := d.Status.Internal.Executed
	if c == nil || record == nil || record.Approval == "" && c.server == "" {
		return nil, nil
	}
	all, err := a.list(ctx, d)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if !allows(&all[i], record.Plan) && !allows(&all[i], c.server) {
			continue
		}
		err := a.markConsumed(ctx, &all[i], now)
		switch gone := apierrors.IsConflict(err) || apierrors.IsNotFound(err); {
		case gone && c.Begun && all[i].Name == record.Approval:
			return err, nil
		case err != nil && !gone:
			return nil, err
		}
	}
	return nil, nil
}

// allows tells whether a decision approves a plan and was not used yet.
func allows(one *v1alpha1.BundleApproval, digest string) bool {
	return one.Spec.Plan == digest && one.Spec.Decision == v1alpha1.DecisionApprove && one.Status.ConsumedTime == nil
}

// markConsumed records in the approval that its plan was begun.
func (a Approvals) markConsumed(ctx context.Context, one *v1alpha1.BundleApproval, now time.Time) error {
	before := one.DeepCopy()
	one.Status.ConsumedTime = new(pipeline.StatusTime(now))
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	marked := one.Status.ConsumedTime
	err := a.Client.Status().Patch(ctx, one, patch, client.FieldOwner(a.Manager))
	if apierrors.IsConflict(err) && a.isMarked(ctx, before, marked) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("marking bundleapproval %s/%s as consumed: %w", before.Namespace, before.Name, err)
	}
	return nil
}

// isMarked tells whether an approval was marked as consumed at a time. A request that was carried out is repeated when its answer was
// lost, and refused then.
func (a Approvals) isMarked(ctx context.Context, one *v1alpha1.BundleApproval, at *metav1.Time) bool {
	var live v1alpha1.BundleApproval
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(one), &live); err != nil {
		return false
	}
	return live.UID == one.UID && live.DeletionTimestamp.IsZero() && live.Status.ConsumedTime != nil && live.Status.ConsumedTime.Equal(at)
}

// Withdraw records that the approval of a plan was withdrawn after the plan was begun, and before anything was written. It
// returns the failure.
func (c *State) Withdraw(d *v1alpha1.BundleDeployment, revision, summary string, err error) error {
	c.Begun = false
	c.approved = nil
	c.Asks = []string{summary}
	return failure.Error{Reason: v1alpha1.ReasonApprovalRequired, Waiting: true, Err: fmt.Errorf("the approval was withdrawn: %w\n%s", err, c.requiredText(d, revision))}
}
