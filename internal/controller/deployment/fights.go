// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// fight is about an object that is changed again whenever it was put back.
type fight struct {
	rounds int
	last   time.Time
	who    string // the difference, in words; "" until it is known that it is a fight
}

const (
	// rounds in a row make a fight.
	rounds = 3
	// truce is how soon a change follows a repair that it seems to answer, at least.
	truce = 30 * time.Second
)

// pause is how long an object is left alone after a repair: from the third round on,
// and longer each time.
func (f fight) pause(longest time.Duration) time.Duration {
	if f.rounds < rounds {
		return 0
	}
	return min(4*time.Second<<min(f.rounds-rounds, 20), longest)
}

// answers tells whether a change at this time belongs to the fight.
func (f fight) answers(now time.Time, longest time.Duration) bool {
	return now.Sub(f.last) <= truce+2*f.pause(longest)
}

// beforeRepairs finds out who fights for the objects that are repaired now, before
// that hides it.
func (r *Reconciler) beforeRepairs(ctx context.Context, s *state, made plan.Plan) {
	longest := s.object.Spec.IntervalOrDefault()
	fights := map[inventory.ID]fight{}
	for id, f := range s.note.fights {
		if f.answers(s.now, longest) {
			fights[id] = f
		}
	}
	for _, action := range made.Actions() {
		if action.Verb != plan.Repair || len(fights) >= mostFights {
			continue
		}
		f := fights[action.ID]
		f.rounds, f.last = f.rounds+1, s.now
		if f.rounds >= rounds {
			r.meet(ctx, s, action.Object, &f)
			r.watches.Calm(client.ObjectKeyFromObject(s.object), action.ID, s.now.Add(f.pause(longest)), false)
		}
		fights[action.ID] = f
	}
	s.note.fights = fights
}

// mostFights bounds the objects that are remembered because they were repaired.
const mostFights = 1000

// meet names the opponent, in an event when it is a new one.
func (r *Reconciler) meet(ctx context.Context, s *state, object plan.Object, f *fight) {
	difference, err := apply.Explain(ctx, s.client, s.owner, object)
	if err != nil || difference.String() == f.who {
		return
	}
	f.who = difference.String()
	r.warning(s, "DriftContested", "Apply", fmt.Sprintf("%s, again and again: it is put back less and less often, in the end once in %s; stop that, or give the fields up by spec.driftDetection.ignore",
		f.who, s.object.Spec.IntervalOrDefault()))
}

// contested are the fights that go on, for the status.
func (s *state) contested() []string {
	var list []string
	for _, f := range s.note.fights {
		if f.who != "" {
			list = append(list, strings.TrimSuffix(f.who, ".")+", again and again")
		}
	}
	slices.Sort(list)
	return list[:min(len(list), mostDrift)]
}
