// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// makeRoom deletes objects for which the API server refuses others, and waits until they are gone. The next reconcile tries the plan
// again: it applies the revision, or fails, so that the applied one gets back what was deleted.
func (st *Stage) makeRoom(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	room := stage.Room{Attempt: in.Resolved.Attempt(in.Subject), Began: in.Now}
	if earlier := in.Note.Applying.Room; earlier != nil && earlier.Attempt == room.Attempt {
		room = *earlier
	}
	found := in.Decided.Successors
	for _, deletions := range found.Deletions {
		for _, deletion := range deletions.Deletions {
			if !slices.ContainsFunc(room.Deletions, func(d plan.Deletion) bool { return d.ID == deletion.ID }) {
				room.Deletions = append(slices.Clip(room.Deletions), plan.Deletion{ID: deletion.ID, Kind: deletion.Kind})
			}
		}
	}
	pruned, err := st.deleteFirst(ctx, in, found.Deletions)
	in.Decided.Plan.Inventory = in.Decided.Plan.Inventory.Without(pruned.Gone...)
	if ctx.Err() != nil || err != nil && len(pruned.Denied) == 0 {
		return pipeline.Stop, err
	}
	in.Wait("what was deleted is gone, and the API server is asked again: " + dryrun.Names(room.Deletions))
	switch {
	case err != nil:
		room.Failed = err.Error()
	case !pruned.Complete():
		in.Delivered.WaitsFor = "deleted before the revision is applied, and not gone yet: " + pipeline.JoinNames(pruned.Waiting)
		if timeout := effective.Timeout(&in.Object.Spec); in.Now.Sub(room.Began) > timeout {
			room.Failed = fmt.Sprintf("not gone within spec.health.timeout (%s): %s", timeout, pipeline.JoinNames(pruned.Waiting))
		}
	case room.Since.IsZero():
		room.Since = in.Now
		in.Note.Applying.Pauses = 0
	}
	in.Note.Applying.Room = &room
	return pipeline.Stop, nil
}
