// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// fieldConflict is about an object that another client changes again after each repair.
type fieldConflict struct {
	rounds int
	last   time.Time
	who    string // the difference in words; "" until there were conflictRounds repairs
}

const (
	// conflictRounds is how many repairs in a row make a conflict.
	conflictRounds = 3
	// conflictWindow is the longest time between a repair and a change that counts as a
	// reaction to it.
	conflictWindow = 30 * time.Second
)

// pause is how long an object is not repaired again: from the third round on, and
// longer each time.
func (f fieldConflict) pause(longest time.Duration) time.Duration {
	if f.rounds < conflictRounds {
		return 0
	}
	return min(4*time.Second<<min(f.rounds-conflictRounds, 20), longest)
}

// continues tells whether a change at this time belongs to the conflict.
func (f fieldConflict) continues(now time.Time, longest time.Duration) bool {
	return now.Sub(f.last) <= conflictWindow+2*f.pause(longest)
}

// recordConflicts finds the conflicting field managers of the objects that are about to
// be repaired, before the repair hides them.
func (r *Reconciler) recordConflicts(ctx context.Context, s *state, made plan.Plan) {
	longest := s.object.Spec.IntervalOrDefault()
	conflicts := map[inventory.ID]fieldConflict{}
	for id, f := range s.note.planned.conflicts {
		if f.continues(s.now, longest) {
			conflicts[id] = f
		}
	}
	for _, action := range made.Actions() {
		if action.Verb != plan.Repair || len(conflicts) >= mostConflicts {
			continue
		}
		f := conflicts[action.ID]
		f.rounds, f.last = f.rounds+1, s.now
		if f.rounds >= conflictRounds {
			r.reportConflict(ctx, s, action.Object, &f)
			r.watches.Calm(client.ObjectKeyFromObject(s.object), action.ID, s.now.Add(f.pause(longest)), false)
		}
		conflicts[action.ID] = f
	}
	s.note.planned.conflicts = conflicts
}

// mostConflicts bounds the objects that are remembered because they were repaired.
const mostConflicts = 1000

// reportConflict records the conflicting field manager, and emits an event when it is a
// new one.
func (r *Reconciler) reportConflict(ctx context.Context, s *state, object plan.Object, f *fieldConflict) {
	difference, err := fieldmanager.Explain(ctx, s.resolved.access.Client, s.owner, object)
	if err != nil || difference.String() == f.who {
		return
	}
	f.who = difference.String()
	r.warning(s, "DriftContested", "Apply", fmt.Sprintf("%s, again and again: it is restored less and less often, finally once in %s; stop that client, or ignore the fields with spec.driftDetection.ignore",
		f.who, s.object.Spec.IntervalOrDefault()))
}

// contested lists the ongoing conflicts for the status.
func (s *state) contested() []string {
	var list []string
	for _, f := range s.note.planned.conflicts {
		if f.who != "" {
			list = append(list, strings.TrimSuffix(f.who, ".")+", again and again")
		}
	}
	slices.Sort(list)
	return list[:min(len(list), mostDrift)]
}
