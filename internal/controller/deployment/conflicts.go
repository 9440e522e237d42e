// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
)

// recordConflicts finds the conflicting field managers of the objects that are about to
// be repaired, before the repair hides them.
func (r *Reconciler) recordConflicts(ctx context.Context, s *state, made plan.Plan) {
	longest := s.Object.Spec.IntervalOrDefault()
	conflicts := map[inventory.ID]stage.FieldConflict{}
	for id, f := range s.note.Planned.Conflicts {
		if f.Continues(s.Now, longest) {
			conflicts[id] = f
		}
	}
	for _, action := range made.Actions() {
		if action.Verb != plan.Repair || len(conflicts) >= mostConflicts {
			continue
		}
		f := conflicts[action.ID]
		f.Rounds, f.Last = f.Rounds+1, s.Now
		if f.Rounds >= stage.ConflictRounds {
			r.reportConflict(ctx, s, action.Object, &f)
			r.watches.Calm(s.Key(), action.ID, s.Now.Add(f.Pause(longest)), false)
		}
		conflicts[action.ID] = f
	}
	s.note.Planned.Conflicts = conflicts
}

// mostConflicts bounds the objects that are remembered because they were repaired.
const mostConflicts = 1000

// reportConflict records the conflicting field manager, and emits an event when it is a
// new one.
func (r *Reconciler) reportConflict(ctx context.Context, s *state, object plan.Object, f *stage.FieldConflict) {
	difference, err := fieldmanager.Explain(ctx, s.resolved.Access.Client, s.Owner, object)
	if err != nil || difference.String() == f.Who {
		return
	}
	f.Who = difference.String()
	r.warning(s, "DriftContested", "Apply", fmt.Sprintf("%s, again and again: it is restored less and less often, finally once in %s; stop that client, or ignore the fields with spec.driftDetection.ignore",
		f.Who, s.Object.Spec.IntervalOrDefault()))
}

// contested lists the ongoing conflicts for the status.
func (s *state) contested() []string {
	var list []string
	for _, f := range s.note.Planned.Conflicts {
		if f.Who != "" {
			list = append(list, strings.TrimSuffix(f.Who, ".")+", again and again")
		}
	}
	slices.Sort(list)
	return list[:min(len(list), mostDrift)]
}
