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
	if !s.resolved.due || len(s.decided.plan.PruneFirst) == 0 {
		return pipeline.Continue, nil
	}
	pruned, err := r.pruneStages(ctx, s, s.decided.plan.PruneFirst)
	s.decided.plan.Inventory = s.decided.plan.Inventory.Without(pruned.Gone...)
	if err == nil && !pruned.Complete() {
		s.wait("deleted before the revision is applied, and not gone yet: " + pipeline.JoinNames(pruned.Waiting))
		return pipeline.Stop, nil
	}
	return pipeline.Continue, err
}

// prune deletes objects that left the bundle, or orphans those that are to be kept,
// once the rest is healthy.
func (r *Reconciler) prune(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.keeping || !s.settled.health.Healthy() || len(s.note.planned.prune) == 0 {
		return pipeline.Continue, nil
	}
	pruned, err := r.pruneStages(ctx, s, s.note.planned.prune)
	if err != nil {
		return pipeline.Stop, err
	}
	if pruned.Complete() {
		s.note.planned.prune = nil
	} else {
		s.note.checked = time.Time{} // check again whether they are gone
	}
	return pipeline.Continue, nil
}

// pruneStages executes deletions, and records their outcome.
func (r *Reconciler) pruneStages(ctx context.Context, s *state, stages []plan.DeletionStage) (removal.Pruned, error) {
	pruned, err := removal.Prune(ctx, s.resolved.access.Client, s.owner, stages, removal.Options{Migrations: r.migrations})
	if s.delivered.pruned == nil {
		s.delivered.pruned = &removal.Pruned{}
	}
	s.delivered.pruned.Add(pruned)
	if recorded := s.record(s.listed.inventory.Without(pruned.Gone...)); recorded != nil {
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
	for _, stage := range s.note.planned.prune {
		for _, deletion := range stage.Deletions {
			left[deletion.ID] = true
		}
	}
	if s.note.planned.held != nil {
		for _, id := range s.note.planned.held.Objects {
			left[id] = true
		}
	}
	proven, changed := s.listed.inventory.Proven(left)
	if !changed {
		return nil
	}
	return s.record(proven)
}
