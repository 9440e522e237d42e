// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// Consume marks the approval of the plan as consumed before anything is written. If that fails because the approval was
// withdrawn, the record is undone.
func (st *Stage) Consume(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if !in.Resolved.Due || in.Keeping {
		return pipeline.Continue, nil
	}
	withdrawn, err := st.Approvals.Consume(ctx, in.Decided.ApprovalState, in.Object, in.Now)
	switch {
	case err != nil:
		return pipeline.Stop, err
	case withdrawn != nil:
		return pipeline.Stop, in.undoBegin(withdrawn)
	}
	return pipeline.Continue, nil
}

// undoBegin restores the status fields that begin and remember changed: no object was
// written.
func (in *Input) undoBegin(err error) error {
	before := in.Delivered.Unbegun
	in.Object.Status.Internal.Executed = before.Executed
	in.Object.Status.Inventory = before.Encoded
	in.Object.Status.Hooks = before.Hooks
	in.Object.Status.Catalog = before.Catalog
	in.Listed.Set(inventory.CurrentOf(before.Inventory))
	return in.Decided.ApprovalState.Withdraw(in.Object, in.Resolved.Revision(), in.Decided.Plan.Summary(), err)
}
