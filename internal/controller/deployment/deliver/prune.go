// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/hooks"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// PruneFirst deletes the objects that must be gone before the revision is applied, and
// waits for that.
func (st *Stage) PruneFirst(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	switch {
	case in.Resolved.Due && len(in.Decided.Successors.Refused) > 0:
		return st.makeRoom(ctx, in)
	case !in.Resolved.Due || len(in.Decided.Plan.PruneFirst) == 0:
		return pipeline.Continue, nil
	}
	pruned, err := st.deleteFirst(ctx, in, in.Decided.Plan.PruneFirst)
	in.Decided.Plan.Inventory = in.Decided.Plan.Inventory.Without(pruned.Gone...)
	if err == nil && !pruned.Complete() {
		in.Wait("deleted before the revision is applied, and not gone yet: " + pipeline.JoinNames(pruned.Waiting))
		return pipeline.Stop, nil
	}
	return pipeline.Continue, err
}

// Prune deletes objects that left the bundle, or orphans those that are to be kept,
// once the rest is healthy.
func (st *Stage) Prune(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if in.Keeping || len(in.Note.Planned.Prune) == 0 {
		return pipeline.Continue, nil
	}
	pruned, err := st.pruneStages(ctx, in, in.Note.Planned.Prune)
	if err != nil {
		return pipeline.Stop, err
	}
	if pruned.Complete() {
		in.Note.Planned.Prune = nil
	} else {
		in.Note.Checked = time.Time{} // check again whether they are gone
	}
	return pipeline.Continue, nil
}

// pruneStages executes deletions, and records their outcome.
func (st *Stage) pruneStages(ctx context.Context, in *Input, stages []plan.DeletionStage) (removal.Pruned, error) {
	decision, err := st.Handover.Decide(ctx, st.Reader, in.Object, in.Listed.Current().Target(), in.Now)
	if err != nil {
		return removal.Pruned{}, err
	}
	pruned, err := removal.Prune(ctx, in.Resolved.Access.Client, in.Owner, stages, removal.Options{Migrations: st.Migrations, HandOver: decision.Of})
	defer st.wake(in, pruned)
	if in.Delivered.Pruned == nil {
		in.Delivered.Pruned = &removal.Pruned{}
	}
	in.Delivered.Pruned.Add(pruned)
	if recorded := in.Listed.Record(in.Subject, in.Listed.Inventory().Without(pruned.Gone...)); recorded != nil {
		return pruned, recorded
	}
	if err == nil && len(pruned.Denied) > 0 {
		err = failure.Error{Reason: v1alpha1.ReasonPruneFailed, Err: in.Resolved.ObjectErrors(ctx, in.Subject, in.Listed, pruned.Denied)}
	}
	return pruned, err
}

// deleteFirst is pruneStages for deletions before a revision is applied: until it is, the inventory says of which objects they are, so
// that these are not applied again as objects of the running revision.
func (st *Stage) deleteFirst(ctx context.Context, in *Input, stages []plan.DeletionStage) (removal.Pruned, error) {
	pruned, err := st.pruneStages(ctx, in, stages)
	deleted := slices.Clone(pruned.DeletedIDs)
	for _, waiting := range pruned.Waiting {
		deleted = append(deleted, waiting.ID)
	}
	return pruned, errors.Join(err, in.Listed.Record(in.Subject, in.Listed.Inventory().Delete(deleted...)))
}

// Remove deletes the objects that are due, and records which it waits for.
func (st *Stage) Remove(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if hooks.BetweenHooks(in.Object) {
		in.Delivered.Removed = &removal.Removed{} // the inventory lists only running hooks
		return pipeline.Continue, nil
	}
	pruning, err := st.Approvals.AllowedPruning(ctx, in.Object)
	if err != nil {
		return pipeline.Stop, err
	}
	decision, err := st.Handover.Decide(ctx, st.Reader, in.Object, in.Listed.Current().Target(), in.Now)
	if err != nil {
		return pipeline.Stop, err
	}
	removed, err := removal.Remove(ctx, in.Resolved.Access.Client, in.Owner, in.Listed.Inventory(), removal.Options{
		Migrations: st.Migrations, Pruning: pruning, HandOver: decision.Of,
	})
	defer st.wake(in, removed.Pruned)
	in.Delivered.Removed = &removed
	if recorded := in.Listed.Record(in.Subject, removed.Inventory); recorded != nil {
		return pipeline.Stop, recorded
	}
	if err != nil {
		return pipeline.Stop, err
	}
	if len(removed.Denied) > 0 {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonRemovalFailed, Err: stage.ObjectErrors(removed.Denied)}
	}
	return pipeline.Continue, nil
}

// GiveAway releases the objects that left a bundle and that other deployments want, although its plan is refused: of two deployments
// that want objects of one another, neither could go on otherwise.
func (st *Stage) GiveAway(ctx context.Context, in *Input) error {
	if len(in.Decided.GivenAway) == 0 {
		return nil
	}
	_, err := st.pruneStages(ctx, in, in.Decided.GivenAway)
	return err
}

// wake queues the deployments to which objects were released.
func (st *Stage) wake(in *Input, pruned removal.Pruned) {
	slices.Sort(pruned.HandedOver)
	for _, name := range slices.Compact(pruned.HandedOver) {
		st.Wake(types.NamespacedName{Namespace: in.Object.Namespace, Name: name})
	}
}
