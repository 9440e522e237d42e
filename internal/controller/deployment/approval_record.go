// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// decisionField selects the decisions about a deployment.
const decisionField = "spec.deployment"

// approvals are the decisions about a deployment, the oldest first.
func (r *Reconciler) approvals(ctx context.Context, d *v1alpha1.BundleDeployment) ([]v1alpha1.BundleApproval, error) {
	var list v1alpha1.BundleApprovalList
	if err := r.Client.List(ctx, &list, client.InNamespace(d.Namespace), client.MatchingFields{decisionField: d.Name}); err != nil {
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
func (r *Reconciler) decisions(ctx context.Context, s *state, c *consent) error {
	all, err := r.approvals(ctx, s.object)
	if err != nil {
		return err
	}
	for i := range all {
		switch one := &all[i]; {
		case one.Spec.Plan != c.digest || !one.DeletionTimestamp.IsZero():
		case one.Spec.ExpirationTime != nil && !s.now.Before(one.Spec.ExpirationTime.Time):
		case one.Spec.Decision == v1alpha1.DecisionDeny && c.denied == nil:
			c.denied = one
		case allows(one, c.digest) && c.approved == nil:
			c.approved = one
		}
	}
	return nil
}

// before holds the status fields that begin replaces.
type before struct {
	executed  *v1alpha1.ExecutedPlan
	encoded   *v1alpha1.Inventory
	inventory inventory.Inventory
	hooks     *v1alpha1.HooksStatus
}

// begin records that the plan is executed, and by which approval, unless that is
// recorded already.
func (r *Reconciler) begin(s *state) {
	c := s.decided.consent
	if s.keeping || c == nil || c.settled() || c.underWay && c.record.Plan == c.digest && c.approved == nil {
		return
	}
	spec := &s.object.Spec
	record := &v1alpha1.ExecutedPlan{
		Plan: c.digest, Key: c.key, Terms: c.terms, Base: c.base, Time: metaTime(s.now),
		ServiceAccountName: spec.ServiceAccountName, RemoteServiceAccountName: spec.RemoteServiceAccountName, KubeConfig: spec.KubeConfig.DeepCopy(),
		DeletionPolicy: spec.DeletionPolicy, DeletesDefinitions: spec.DeletesCRDs(),
	}
	if c.record != nil {
		record.Grounds = c.record.Grounds
	}
	if c.approved != nil && c.denied == nil {
		record.Approval, record.Grounds = c.approved.Name, c.demand.grounds
	}
	r.prove(s.object, record)
	c.begun, s.object.Status.Executed = true, record
}

// consume marks the approval of the plan as consumed before anything is written, so that
// it allows nothing else. If that fails because the approval was withdrawn, the record is
// undone. After a crash, the approval is found by the record.
func (r *Reconciler) consume(ctx context.Context, s *state) (pipeline.Outcome, error) {
	record := s.object.Status.Executed
	if !s.resolved.due || s.keeping || s.decided.consent == nil || record == nil || record.Approval == "" {
		return pipeline.Continue, nil
	}
	all, err := r.approvals(ctx, s.object)
	if err != nil {
		return pipeline.Stop, err
	}
	for i := range all {
		if !allows(&all[i], record.Plan) {
			continue
		}
		err := r.markConsumed(ctx, &all[i], s)
		switch withdrawn := apierrors.IsConflict(err) || apierrors.IsNotFound(err); {
		case withdrawn && s.decided.consent.begun && all[i].Name == record.Approval:
			return pipeline.Stop, s.undoBegin(err)
		case err != nil && !withdrawn:
			return pipeline.Stop, err
		}
	}
	return pipeline.Continue, nil
}

// allows tells whether a decision approves a plan and was not used yet.
func allows(one *v1alpha1.BundleApproval, digest string) bool {
	return one.Spec.Plan == digest && one.Spec.Decision == v1alpha1.DecisionApprove && one.Status.ConsumedTime == nil
}

// markConsumed records in the approval that its plan was begun.
func (r *Reconciler) markConsumed(ctx context.Context, one *v1alpha1.BundleApproval, s *state) error {
	before := one.DeepCopy()
	one.Status.ConsumedTime = new(metaTime(s.now))
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, one, patch, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("marking bundleapproval %s/%s as consumed: %w", one.Namespace, one.Name, err)
	}
	return nil
}

// undoBegin restores the status fields that begin and remember changed: no object was
// written.
func (s *state) undoBegin(err error) error {
	s.object.Status.Executed, s.object.Status.Inventory, s.listed.inventory = s.delivered.unbegun.executed, s.delivered.unbegun.encoded, s.delivered.unbegun.inventory
	s.object.Status.Hooks = s.delivered.unbegun.hooks
	s.decided.consent.begun, s.decided.consent.approved = false, nil
	s.decided.consent.asks = []string{s.decided.plan.Summary()}
	return failure.Error{Reason: v1alpha1.ReasonApprovalRequired, Waiting: true, Err: fmt.Errorf("the approval was withdrawn: %w\n%s", err, s.requiredText())}
}
