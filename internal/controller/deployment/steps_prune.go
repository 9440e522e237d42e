// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// pruneFirst deletes the objects that must be gone before the revision is applied, and
// waits for that.
func (r *Reconciler) pruneFirst(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due || len(s.decided.Plan.PruneFirst) == 0 {
		return pipeline.Continue, nil
	}
	pruned, err := r.pruneStages(ctx, s, s.decided.Plan.PruneFirst)
	s.decided.Plan.Inventory = s.decided.Plan.Inventory.Without(pruned.Gone...)
	if err == nil && !pruned.Complete() {
		s.wait("deleted before the revision is applied, and not gone yet: " + pipeline.JoinNames(pruned.Waiting))
		return pipeline.Stop, nil
	}
	return pipeline.Continue, err
}

// prune deletes objects that left the bundle, or orphans those that are to be kept,
// once the rest is healthy.
func (r *Reconciler) prune(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.Keeping || !s.settled.Health.Healthy() || len(s.note.Planned.Prune) == 0 {
		return pipeline.Continue, nil
	}
	pruned, err := r.pruneStages(ctx, s, s.note.Planned.Prune)
	if err != nil {
		return pipeline.Stop, err
	}
	if pruned.Complete() {
		s.note.Planned.Prune = nil
	} else {
		s.note.Checked = time.Time{} // check again whether they are gone
	}
	return pipeline.Continue, nil
}

// pruneStages executes deletions, and records their outcome.
func (r *Reconciler) pruneStages(ctx context.Context, s *state, stages []plan.DeletionStage) (removal.Pruned, error) {
	pruned, err := removal.Prune(ctx, s.resolved.Access.Client, s.Owner, stages, removal.Options{Migrations: r.migrations})
	if s.delivered.Pruned == nil {
		s.delivered.Pruned = &removal.Pruned{}
	}
	s.delivered.Pruned.Add(pruned)
	if recorded := s.listed.Record(&s.Subject, s.listed.Inventory.Without(pruned.Gone...)); recorded != nil {
		return pruned, recorded
	}
	if err == nil && len(pruned.Denied) > 0 {
		err = failure.Error{Reason: v1alpha1.ReasonPruneFailed, Err: s.objectErrors(ctx, pruned.Denied)}
	}
	return pruned, err
}

// prove records that the installed objects were healthy: from now on their deletions
// count. Objects that left the bundle are not proven by that.
func (s *state) prove() error {
	left := map[inventory.ID]bool{}
	for _, stage := range s.note.Planned.Prune {
		for _, deletion := range stage.Deletions {
			left[deletion.ID] = true
		}
	}
	if s.note.Planned.Held != nil {
		for _, id := range s.note.Planned.Held.Objects {
			left[id] = true
		}
	}
	proven, changed := s.listed.Inventory.Proven(left)
	if !changed {
		return nil
	}
	return s.listed.Record(&s.Subject, proven)
}
