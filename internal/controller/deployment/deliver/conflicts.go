// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// recordConflicts finds the conflicting field managers of the objects that are about to
// be repaired, before the repair hides them.
func (st *Stage) recordConflicts(ctx context.Context, in *Input, made plan.Plan) {
	longest := effective.Interval(&in.Object.Spec)
	conflicts := map[inventory.ID]stage.FieldConflict{}
	for id, f := range in.Note.Planned.Conflicts {
		if f.Continues(in.Now, longest) {
			conflicts[id] = f
		}
	}
	for action := range made.Actions() {
		if action.Verb != plan.Repair || len(conflicts) >= mostConflicts {
			continue
		}
		f := conflicts[action.ID]
		f.Rounds, f.Last = f.Rounds+1, in.Now
		if f.Rounds >= stage.ConflictRounds {
			st.reportConflict(ctx, in, action.Object, &f)
			st.Watches.IgnoreDrift(in.Key(), action.ID, in.Now.Add(f.Pause(longest)), false)
		}
		conflicts[action.ID] = f
	}
	in.Note.Planned.Conflicts = conflicts
}

// mostConflicts bounds the objects that are remembered because they were repaired.
const mostConflicts = 1000

// reportConflict records the conflicting field manager, and emits an event when it is a
// new one.
func (st *Stage) reportConflict(ctx context.Context, in *Input, object plan.Object, f *stage.FieldConflict) {
	difference, err := fieldmanager.Explain(ctx, in.Resolved.Access.Client, in.Owner, object)
	if err != nil || difference.String() == f.Who {
		return
	}
	f.Who = difference.String()
	st.Events.Warning(in.Subject, "DriftContested", "Apply", fmt.Sprintf("%s, again and again: it is restored less and less often, finally once in %s; stop that client, or ignore the fields with spec.drift.ignore",
		f.Who, effective.Interval(&in.Object.Spec)))
}
