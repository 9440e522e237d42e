// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// checkHealth checks objects once: after a full comparison, those that changed since
// they were last seen healthy; else those that were not healthy or that a watch
// reported, and when these are healthy, those that are not watched.
func (r *Reconciler) checkHealth(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.resolved.due {
		s.note = r.newNote(s)
	}
	if len(s.object.Spec.HealthChecks) > 0 {
		var err error
		if s.note.health.objects, err = healthChecks(ctx, s); err != nil {
			return pipeline.Stop, err
		}
	}
	if s.resolved.due {
		return pipeline.Continue, r.look(ctx, s, s.news(), s.delivered.applied.Live)
	}
	first := s.first()
	rest := s.rest(first)
	if len(first) == 0 {
		return pipeline.Continue, r.look(ctx, s, rest, nil)
	}
	if err := r.look(ctx, s, first, s.restored()); err != nil || !s.settled.health.Healthy() || len(rest) == 0 {
		return pipeline.Continue, err
	}
	return pipeline.Continue, r.look(ctx, s, rest, nil)
}

// without removes the objects that were checked already.
func without(objects, seen []plan.Object) []plan.Object {
	ids := make(map[inventory.ID]bool, len(seen))
	for _, object := range seen {
		ids[object.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(objects), func(o plan.Object) bool { return ids[o.ID] })
}

func (r *Reconciler) look(ctx context.Context, s *state, objects []plan.Object, fresh map[inventory.ID]*unstructured.Unstructured) error {
	objects = s.withoutDone(objects)
	report, err := s.rules.Check(ctx, s.resolved.access.Client, objects, fresh)
	if err != nil {
		return err
	}
	if err := r.complete(s, report); err != nil {
		return err
	}
	report.Total = s.lookedAt()
	s.saw(report)
	s.settled.health = &report
	unhealthy := map[inventory.ID]bool{}
	for _, object := range report.Unhealthy {
		unhealthy[object.ID] = true
	}
	s.note.health.unhealthy = nil
	s.note.health.missing = slices.ContainsFunc(report.Unhealthy, func(o health.Object) bool { return o.State == health.Missing })
	for _, object := range objects {
		if unhealthy[object.ID] {
			s.note.health.unhealthy = append(s.note.health.unhealthy, object)
		}
	}
	return nil
}

// complete records the completed Jobs, so that they do not run again when they are
// deleted.
func (r *Reconciler) complete(s *state, report health.Report) error {
	jobs := map[inventory.ID]bool{}
	for id, sight := range report.Seen {
		if sight.Completed {
			jobs[id] = true
		}
	}
	completed, changed := s.listed.inventory.Complete(jobs)
	if !changed {
		return nil
	}
	r.watches.Completed(client.ObjectKeyFromObject(s.object), jobs)
	return s.record(completed)
}

// withoutDone removes completed Jobs, which may be deleted by now.
func (s *state) withoutDone(objects []plan.Object) []plan.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o plan.Object) bool {
		entry, _ := s.listed.inventory.Get(o.ID)
		return entry.Done
	})
}

// saw notes the health of the checked objects, and whether one died: it was healthy
// before, and its spec did not change since.
func (s *state) saw(report health.Report) {
	if s.settled.health != nil { // an earlier check of this reconcile
		for id, sight := range s.settled.health.Seen {
			report.Seen[id] = sight
		}
	}
	looked := make(map[inventory.ID]health.Sight, len(s.note.health.objects))
	died := false
	for _, object := range s.note.health.objects {
		before, known := s.note.health.looked[object.ID]
		sight, seen := report.Seen[object.ID]
		switch {
		case seen:
			looked[object.ID] = sight
			died = died || !sight.Healthy && before.Healthy && sight.Version != "" && sight.Generation == before.Generation
		case known:
			looked[object.ID] = before
		}
	}
	s.note.health.looked = looked
	switch {
	case report.Healthy():
		s.note.health.unhealthySince = time.Time{}
	case died && s.note.health.unhealthySince.IsZero():
		s.note.health.unhealthySince = s.now
	}
}

// newNote is the note for the next reconciles, without the contents of the objects.
func (r *Reconciler) newNote(s *state) note {
	n := note{
		uid: s.object.UID, attempt: s.attempt(), checked: s.now, applying: applyingNote{wrote: s.note.applying.wrote},
		planned: plannedNote{
			prune: s.decided.plan.Prune, held: s.decided.plan.Held, skipped: len(s.decided.plan.Skipped),
			contains: packageStatus(s.rendered.contains), material: s.rendered.Material, conflicts: s.note.planned.conflicts,
		},
		health: healthNote{looked: s.note.health.looked},
	}
	if s.rendered.issued != nil {
		n.renew = s.renewal()
	}
	switch {
	case s.writes():
		n.applying.wrote = s.now
	case s.note.attempt == n.attempt:
		n.applying.pauses, n.health.unhealthySince = s.note.applying.pauses, s.note.health.unhealthySince // the unfinished work is the same as before
	}
	for _, action := range s.decided.plan.Actions() {
		if action.Untracked {
			continue
		}
		n.health.total++
		if s.rules.Looks(action.Object) {
			object := action.Object
			object.Desired = nil
			n.health.objects = append(n.health.objects, object)
		}
	}
	return n
}
