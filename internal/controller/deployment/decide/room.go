// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// room is what this attempt has deleted for objects that the API server refuses; nil for nothing.
func (in *Input) room() *stage.Room {
	if room := in.Note.Applying.Room; !in.Keeping && room != nil && room.Attempt == in.Resolved.Attempt(in.Subject) {
		return room
	}
	return nil
}

// awaitRoom accepts a plan with objects that the API server refuses because of others that the plan deletes first. If it still refuses them
// when those are gone, or they cannot be deleted, the plan fails, so that the applied revision gets back what was deleted. Nothing is deleted
// for the same revision again, unless a reconcile is requested.
func (in *Input) awaitRoom(ctx context.Context, found dryrun.Successors) (pipeline.Outcome, error) {
	if len(found.Refused) == 0 {
		return pipeline.Continue, nil
	}
	room := in.room()
	switch {
	case room == nil && in.failedForRoom():
		return pipeline.Stop, in.refusedAfterDeletion(ctx, found, "the deletion of what left the bundle did not help before")
	case room == nil:
	case room.Failed != "":
		return pipeline.Stop, in.refusedAfterDeletion(ctx, found, room.Failed)
	case !room.Since.IsZero() && len(found.Deletions) == 0 && in.Now.Sub(room.Since) >= found.LongestSettling():
		room.Failed = "the deletion of " + dryrun.Names(room.Deletions) + " did not help"
		return pipeline.Stop, in.refusedAfterDeletion(ctx, found, room.Failed)
	}
	in.Decided.Successors = found
	if len(found.Deletions) > 0 {
		in.Decided.Warnings = append(in.Decided.Warnings, found.String())
	}
	return pipeline.Continue, nil
}

// failedForRoom tells that the same revision was refused after deletions, and that no reconcile was requested since.
func (in *Input) failedForRoom() bool {
	if !in.Resolved.SameAsBefore(in.Subject) || in.Before.Status.LastHandledReconcileAt != pipeline.Requested(in.Object) {
		return false
	}
	return slices.ContainsFunc([]string{meta.ReadyCondition, v1alpha1.PlannedCondition}, func(kind string) bool {
		return conditions.GetReason(in.Before, kind) == v1alpha1.ReasonStillRefused
	})
}

// refusedAfterDeletion is the failure of a plan with objects that the API server refuses, whatever is deleted for them.
func (in *Input) refusedAfterDeletion(ctx context.Context, found dryrun.Successors, why string) error {
	refused := in.Resolved.ObjectErrors(ctx, in.Subject, in.Listed, found.Refused)
	return failure.Error{Reason: v1alpha1.ReasonStillRefused, Err: fmt.Errorf("%w\n%s; the deleted objects are applied again. Change the refused object, or free what it needs and run: satchel reconcile %s -n %s",
		refused, why, in.Object.Name, in.Object.Namespace)}
}
