// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/controller/deployment/healthchecks"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec"
)

// CheckHealth checks objects once: after a full comparison, those that changed since
// they were last seen healthy; else those that were not healthy or that a watch
// reported, and when these are healthy, those that are not watched.
func (st *Stage) CheckHealth(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if in.Resolved.Due {
		*in.Note = in.newNote()
	}
	if len(in.Object.Spec.Health.Checks) > 0 {
		var err error
		if in.Note.Health.Objects, err = healthchecks.Objects(ctx, in.Object, in.Resolved.Access.Client.Kinds()); err != nil {
			return pipeline.Stop, err
		}
	}
	if in.Resolved.Due {
		return pipeline.Continue, st.look(ctx, in, in.news(), in.Delivered.Applied.Live)
	}
	first := in.first()
	rest := in.rest(first)
	if len(first) == 0 {
		return pipeline.Continue, st.look(ctx, in, rest, nil)
	}
	if err := st.look(ctx, in, first, in.Delivered.Repaired.Live()); err != nil || !in.Settled.Health.Healthy() || len(rest) == 0 {
		return pipeline.Continue, err
	}
	return pipeline.Continue, st.look(ctx, in, rest, nil)
}

// without removes the objects that were checked already.
func without(objects, seen []plan.Object) []plan.Object {
	ids := make(map[inventory.ID]bool, len(seen))
	for _, object := range seen {
		ids[object.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(objects), func(o plan.Object) bool { return ids[o.ID] })
}

func (st *Stage) look(ctx context.Context, in *Input, objects []plan.Object, fresh map[inventory.ID]*unstructured.Unstructured) error {
	objects = in.withoutDone(objects)
	report, err := in.Rules.Check(ctx, in.Resolved.Access.Client, objects, fresh)
	if err != nil {
		return err
	}
	if err := st.complete(in, report); err != nil {
		return err
	}
	report.Total = in.lookedAt()
	in.saw(report)
	in.Settled.Health = &report
	unhealthy := map[inventory.ID]bool{}
	for _, object := range report.Unhealthy {
		unhealthy[object.ID] = true
	}
	in.Note.Health.Unhealthy = nil
	in.Note.Health.Missing = slices.ContainsFunc(report.Unhealthy, func(o health.Object) bool { return o.State == health.Missing })
	for _, object := range objects {
		if unhealthy[object.ID] {
			in.Note.Health.Unhealthy = append(in.Note.Health.Unhealthy, object)
		}
	}
	return nil
}

// complete records the completed Jobs, so that they do not run again when they are
// deleted.
func (st *Stage) complete(in *Input, report health.Report) error {
	jobs := map[inventory.ID]bool{}
	for id, sight := range report.Seen {
		if sight.Completed {
			jobs[id] = true
		}
	}
	completed, changed := in.Listed.Current().Complete(jobs)
	if !changed {
		return nil
	}
	st.Watches.Completed(in.Key(), jobs)
	return in.Listed.Record(in.Subject, completed)
}

// withoutDone removes completed Jobs, which may be deleted by now.
func (in *Input) withoutDone(objects []plan.Object) []plan.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o plan.Object) bool {
		entry, _ := in.Listed.Current().Get(o.ID)
		return entry.Done
	})
}

// saw notes the health of the checked objects, and whether one died: it was healthy
// before, and was neither changed nor recreated since.
func (in *Input) saw(report health.Report) {
	if in.Settled.Health != nil { // an earlier check of this reconcile
		for id, sight := range in.Settled.Health.Seen {
			report.Seen[id] = sight
		}
	}
	looked := make(map[inventory.ID]health.Sight, len(in.Note.Health.Objects))
	died := false
	for _, object := range in.Note.Health.Objects {
		before, known := in.Note.Health.Looked[object.ID]
		sight, seen := report.Seen[object.ID]
		switch {
		case seen:
			looked[object.ID] = sight
			died = died || !sight.Healthy && before.Healthy && sight.Version != "" && sight.UID == before.UID && sight.Generation == before.Generation
		case known:
			looked[object.ID] = before
		}
	}
	in.Note.Health.Looked = looked
	switch {
	case report.Healthy():
		in.Note.Health.UnhealthySince = time.Time{}
	case died && in.Note.Health.UnhealthySince.IsZero():
		in.Note.Health.UnhealthySince = in.Now
	}
}

// newNote is the note for the next reconciles, without the contents of the objects.
func (in *Input) newNote() stage.Note {
	n := stage.Note{
		UID: in.Object.UID, Attempt: in.Resolved.Attempt(in.Subject), Checked: in.Now, Applying: stage.ApplyingNote{Wrote: in.Note.Applying.Wrote},
		Planned: stage.PlannedNote{
			Prune: in.Decided.Plan.Prune, Held: in.Decided.Plan.Held, Skipped: len(in.Decided.Plan.Skipped),
			Contains: spec.PackageStatus(in.Rendered.Contains), Requires: spec.RequiresStatus(in.Rendered.Requires), Material: in.Rendered.Material, Conflicts: in.Note.Planned.Conflicts,
			Steady: in.steady(), Capabilities: in.Rendered.Capabilities,
		},
		Health: stage.HealthNote{Looked: in.Note.Health.Looked},
	}
	if in.Rendered.Issued != nil {
		n.Renew = in.renewal()
	}
	switch {
	case in.Decided.Writes():
		n.Applying.Wrote = in.Now
	case in.Note.Attempt == n.Attempt:
		n.Applying.Pauses, n.Health.UnhealthySince = in.Note.Applying.Pauses, in.Note.Health.UnhealthySince // the unfinished work is the same as before
	}
	for action := range in.Decided.Plan.Actions() {
		if action.Untracked {
			continue
		}
		n.Health.Total++
		if in.Rules.Looks(action.Object) {
			object := action.Object
			object.Desired = nil
			n.Health.Objects = append(n.Health.Objects, object)
		}
	}
	return n
}

// steady tells that nothing but the input and the metadata of the objects decides what the next plan does: not what other
// deployments or users install, nor the contents of certificates, nor hooks.
func (in *Input) steady() bool {
	return in.Delivered.Complete && !in.Keeping && in.Decided.LeavesNothing() &&
		len(in.Rendered.Wanted) == 0 && len(in.Rendered.Requires) == 0 && len(in.Rendered.Hooks) == 0 &&
		!slices.ContainsFunc(in.Listed.Inventory().Entries, func(e inventory.Entry) bool { return violation.IsDeployment(e.ID) })
}

// lookedAt is the number of objects that a health report covers.
func (in *Input) lookedAt() int {
	if len(in.Object.Spec.Health.Checks) > 0 {
		return len(in.Note.Health.Objects)
	}
	return in.Note.Health.Total
}

// healthyWords says that all checked objects are healthy.
func (in *Input) healthyWords() string {
	if checks := len(in.Object.Spec.Health.Checks); checks > 0 {
		return fmt.Sprintf("the %d of spec.health.checks are healthy", checks)
	}
	return "all healthy"
}
