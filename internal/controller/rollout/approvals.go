// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/announce"
	"github.com/satchel-dev/satchel/internal/controller/rollout/approval"
	"github.com/satchel-dev/satchel/internal/controller/rollout/removal"
	"github.com/satchel-dev/satchel/internal/controller/rollout/takeover"
)

// readApprovals reads the decisions about the rollout, and marks those as used that the status says were used: a process that ended
// after it had recorded that did not.
func (r *Reconciler) readApprovals(ctx context.Context, s *state) (pipeline.Outcome, error) {
	var err error
	if s.approvals, err = approval.List(ctx, r.Client, s.key()); err != nil {
		return pipeline.Stop, err
	}
	_, err = r.consume(ctx, s)
	return pipeline.Continue, err
}

// takeOver waits for an approver where BundleDeployments of a former rollout had stricter waves.
func (r *Reconciler) takeOver(ctx context.Context, s *state) (pipeline.Outcome, error) {
	done, err := r.keeper(s).Keep(ctx, s.approvals, s.now)
	s.object.Status.Takeover = done.Status
	switch {
	case err != nil:
		return pipeline.Stop, err
	case done.Denied:
		return pipeline.Stop, stalledBy(v1alpha1.ReasonApprovalDenied, "%s", done.Message)
	case done.Status != nil:
		return pipeline.Stop, waitsFor(v1alpha1.ReasonApprovalPending, "%s", done.Message)
	case done.Used == "":
		return pipeline.Continue, nil
	}
	s.memory.doubt(s.now) // the cache does not have the marks
	isNew, err := approval.Marker{Client: r.Client, Live: r.APIReader, Manager: FieldManager}.Consume(ctx, s.approvals, done.Used, s.now)
	if isNew {
		announce.ApprovalUsed(r.Events, s.object, done.Used, "to take over clusters of a former rollout")
	}
	return pipeline.Continue, err
}

func (r *Reconciler) keeper(s *state) takeover.Keeper {
	return takeover.Keeper{Writer: r.removals(), Rollout: s.object, Children: s.children}
}

// consumeApprovals marks the approvals as used that the decision was recorded with, before anything is carried out. Where one was
// withdrawn meanwhile, none of the starts that were just recorded is carried out.
func (r *Reconciler) consumeApprovals(ctx context.Context, s *state) (pipeline.Outcome, error) {
	isWithdrawn, err := r.consume(ctx, s)
	if isWithdrawn {
		for _, entry := range s.decision.Starts {
			s.drop(entry)
		}
		s.decision.Starts = nil
	}
	return pipeline.Continue, err
}

// consume marks approvals as used, and tells whether one was withdrawn before it could be.
func (r *Reconciler) consume(ctx context.Context, s *state) (isWithdrawn bool, _ error) {
	released := map[string]bool{}
	for _, child := range s.children {
		if plan := removal.Released(child, s.object.UID); plan != "" {
			released[plan] = true
		}
	}
	marker := approval.Marker{Client: r.Client, Live: r.APIReader, Manager: FieldManager}
	var problems []error
	for _, used := range s.approvals.InStatus(&s.object.Status, released) {
		isNew, err := marker.Consume(ctx, s.approvals, used.Name, s.now)
		switch {
		case errors.Is(err, approval.ErrWithdrawn):
			isWithdrawn = true
		case err != nil:
			problems = append(problems, err)
		case isNew:
			announce.ApprovalUsed(r.Events, s.object, used.Name, used.For)
		}
	}
	return isWithdrawn, errors.Join(problems...)
}
