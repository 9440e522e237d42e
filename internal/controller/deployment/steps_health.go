// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// checkHealth checks objects once: after a full comparison, those that changed since
// they were last seen healthy; else those that were not healthy or that a watch
// reported, and when these are healthy, those that are not watched.
func (r *Reconciler) checkHealth(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.resolved.Due {
		s.note = r.newNote(s)
	}
	if len(s.Object.Spec.HealthChecks) > 0 {
		var err error
		if s.note.Health.Objects, err = healthChecks(ctx, s); err != nil {
			return pipeline.Stop, err
		}
	}
	if s.resolved.Due {
		return pipeline.Continue, r.look(ctx, s, s.news(), s.delivered.Applied.Live)
	}
	first := s.first()
	rest := s.rest(first)
	if len(first) == 0 {
		return pipeline.Continue, r.look(ctx, s, rest, nil)
	}
	if err := r.look(ctx, s, first, s.restored()); err != nil || !s.settled.Health.Healthy() || len(rest) == 0 {
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
	report, err := s.Rules.Check(ctx, s.resolved.Access.Client, objects, fresh)
	if err != nil {
		return err
	}
	if err := r.complete(s, report); err != nil {
		return err
	}
	report.Total = s.lookedAt()
	s.saw(report)
	s.settled.Health = &report
	unhealthy := map[inventory.ID]bool{}
	for _, object := range report.Unhealthy {
		unhealthy[object.ID] = true
	}
	s.note.Health.Unhealthy = nil
	s.note.Health.Missing = slices.ContainsFunc(report.Unhealthy, func(o health.Object) bool { return o.State == health.Missing })
	for _, object := range objects {
		if unhealthy[object.ID] {
			s.note.Health.Unhealthy = append(s.note.Health.Unhealthy, object)
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
	completed, changed := s.listed.Inventory.Complete(jobs)
	if !changed {
		return nil
	}
	r.watches.Completed(s.Key(), jobs)
	return s.listed.Record(&s.Subject, completed)
}

// withoutDone removes completed Jobs, which may be deleted by now.
func (s *state) withoutDone(objects []plan.Object) []plan.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o plan.Object) bool {
		entry, _ := s.listed.Inventory.Get(o.ID)
		return entry.Done
	})
}

// saw notes the health of the checked objects, and whether one died: it was healthy
// before, and its spec did not change since.
func (s *state) saw(report health.Report) {
	if s.settled.Health != nil { // an earlier check of this reconcile
		for id, sight := range s.settled.Health.Seen {
			report.Seen[id] = sight
		}
	}
	looked := make(map[inventory.ID]health.Sight, len(s.note.Health.Objects))
	died := false
	for _, object := range s.note.Health.Objects {
		before, known := s.note.Health.Looked[object.ID]
		sight, seen := report.Seen[object.ID]
		switch {
		case seen:
			looked[object.ID] = sight
			died = died || !sight.Healthy && before.Healthy && sight.Version != "" && sight.Generation == before.Generation
		case known:
			looked[object.ID] = before
		}
	}
	s.note.Health.Looked = looked
	switch {
	case report.Healthy():
		s.note.Health.UnhealthySince = time.Time{}
	case died && s.note.Health.UnhealthySince.IsZero():
		s.note.Health.UnhealthySince = s.Now
	}
}

// newNote is the note for the next reconciles, without the contents of the objects.
func (r *Reconciler) newNote(s *state) stage.Note {
	n := stage.Note{
		UID: s.Object.UID, Attempt: s.resolved.Attempt(&s.Subject), Checked: s.Now, Applying: stage.ApplyingNote{Wrote: s.note.Applying.Wrote},
		Planned: stage.PlannedNote{
			Prune: s.decided.Plan.Prune, Held: s.decided.Plan.Held, Skipped: len(s.decided.Plan.Skipped),
			Contains: packageStatus(s.rendered.Contains), Material: s.rendered.Material, Conflicts: s.note.Planned.Conflicts,
		},
		Health: stage.HealthNote{Looked: s.note.Health.Looked},
	}
	if s.rendered.Issued != nil {
		n.Renew = s.renewal()
	}
	switch {
	case s.decided.Writes():
		n.Applying.Wrote = s.Now
	case s.note.Attempt == n.Attempt:
		n.Applying.Pauses, n.Health.UnhealthySince = s.note.Applying.Pauses, s.note.Health.UnhealthySince // the unfinished work is the same as before
	}
	for _, action := range s.decided.Plan.Actions() {
		if action.Untracked {
			continue
		}
		n.Health.Total++
		if s.Rules.Looks(action.Object) {
			object := action.Object
			object.Desired = nil
			n.Health.Objects = append(n.Health.Objects, object)
		}
	}
	return n
}
