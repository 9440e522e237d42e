// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Compare tells, from the metadata of the objects alone, whether each of them is as it was left. A plan that was quiet would
// be quiet again then, so nothing has to be converted. What cannot be read is left to the plan, which reports it.
func (st *Stage) Compare(ctx context.Context, in *Input) (same bool, err error) {
	applied := st.Watches.Adopt(in.Key(), in.Listed.Inventory())
	protection := ownership.Protection(effective.CollisionProtection(&in.Object.Spec))
	found, same, err := observe.Applied(ctx, in.Resolved.Access.Client, in.Owner, applied, protection)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil || !same {
		return false, nil //nolint:nilerr // the plan reports it
	}
	if !slices.Equal(applied.Entries, in.Listed.Inventory().Entries) {
		if err := in.Listed.Record(in.Subject, applied); err != nil {
			return false, err
		}
	}
	in.Decided.Untouched = found
	if in.Resolved.LeavesDrift(in.Subject) {
		in.Decided.Drift = stage.Drift{Compared: true}
	}
	return true, nil
}
