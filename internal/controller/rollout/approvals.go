// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/announce"
	"github.com/satchel-dev/satchel/internal/controller/rollout/approval"
	"github.com/satchel-dev/satchel/internal/rollout"
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
		if plan := child.Annotations[v1alpha1.RolloutReleasedAnnotation]; plan != "" {
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

// withoutWithdrawn are recorded starts but for those of waves of which the approval was deleted: these wait for another one.
func (s *state) withoutWithdrawn(entries []v1alpha1.RolloutStart) []v1alpha1.RolloutStart {
	status := &s.object.Status
	entries = slices.Clone(entries)
	if rollout.Returns(status) || status.UpdateRevision == nil {
		return entries
	}
	return slices.DeleteFunc(entries, func(entry v1alpha1.RolloutStart) bool {
		cluster, selected := s.clusters[entry.Cluster]
		if !selected || entry.Revision != status.UpdateRevision.Name {
			return false
		}
		name := s.strategy.ApprovalOf(s.strategy.WaveOf(cluster.Labels), status)
		return name != "" && !s.approvals.Has(name)
	})
}
