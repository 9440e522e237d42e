// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/step"
)

// pruneFirst deletes what has to go before the revision is applied, and waits until it
// is gone.
func (r *Reconciler) pruneFirst(ctx context.Context, s *state) (step.Outcome, error) {
	if !s.due || len(s.plan.PruneFirst) == 0 {
		return step.Continue, nil
	}
	pruned, err := r.letGo(ctx, s, s.plan.PruneFirst)
	s.plan.Inventory = s.plan.Inventory.Without(pruned.Gone...)
	if err == nil && !pruned.Complete() {
		s.wait("deleted before the revision is applied, and not gone yet: " + names(pruned.Waiting))
		return step.Stop, nil
	}
	return step.Continue, err
}

// prune deletes what left the bundle, or lets go of it where nothing is to be
// deleted, once the rest is healthy.
func (r *Reconciler) prune(ctx context.Context, s *state) (step.Outcome, error) {
	if s.keeping || !s.health.Healthy() || len(s.note.prune) == 0 {
		return step.Continue, nil
	}
	pruned, err := r.letGo(ctx, s, s.note.prune)
	if err != nil {
		return step.Stop, err
	}
	if pruned.Complete() {
		s.note.prune = nil
	} else {
		s.note.checked = time.Time{} // look again at what is going
	}
	return step.Continue, nil
}

// letGo carries deletions out, and records what became of them.
func (r *Reconciler) letGo(ctx context.Context, s *state, stages []plan.DeletionStage) (apply.Pruned, error) {
	pruned, err := apply.Prune(ctx, s.client, s.owner, stages, apply.Options{Migrations: r.migrations})
	if s.pruned == nil {
		s.pruned = &apply.Pruned{}
	}
	s.pruned.Add(pruned)
	if recorded := s.record(s.previous.Without(pruned.Gone...)); recorded != nil {
		return pruned, recorded
	}
	if err == nil && len(pruned.Denied) > 0 {
		err = failure{reason: v1alpha1.ReasonPruneFailed, err: s.objectErrors(ctx, pruned.Denied)}
	}
	return pruned, err
}

// prove records that what is installed was healthy: from now on its deletion counts.
// What left it is not proven by that.
func (s *state) prove() error {
	left := map[inventory.ID]bool{}
	for _, stage := range s.note.prune {
		for _, deletion := range stage.Deletions {
			left[deletion.ID] = true
		}
	}
	if s.note.held != nil {
		for _, id := range s.note.held.Objects {
			left[id] = true
		}
	}
	proven, changed := s.previous.Proven(left)
	if !changed {
		return nil
	}
	return s.record(proven)
}
