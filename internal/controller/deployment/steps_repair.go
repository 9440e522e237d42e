// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// restored are the objects that were repaired in this reconcile, as the API server
// returned them.
func (s *state) restored() map[inventory.ID]*unstructured.Unstructured {
	if s.delivered.Repaired == nil || s.delivered.Repaired.Applied == nil {
		return nil
	}
	return s.delivered.Repaired.Applied.Live
}

// repair corrects drift that watches reported, from what was applied last. That was
// planned and accepted before, so it only updates existing objects and adopts none. If
// that is not enough, everything is compared as if the interval were over.
func (r *Reconciler) repair(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.resolved.Due || len(s.resolved.Found.Drifted) == 0 {
		return pipeline.Continue, nil
	}
	desired, whole, err := snapshot.ReadSome(r.Snapshots, string(s.Object.UID), s.resolved.Revision(), s.resolved.Found.Drifted)
	if err != nil {
		return pipeline.Stop, err
	}
	if s.resolved.Due = !whole || s.Object.Status.LastAppliedRevision != s.resolved.Revision(); s.resolved.Due {
		return pipeline.Continue, nil
	}
	ignore, err := s.ignoring()
	if err != nil {
		return pipeline.Stop, err
	}
	observed, err := observe.Cluster(ctx, s.resolved.Access.Client, observe.Request{
		Owner: s.Owner, Desired: desired, Previous: s.entriesOf(desired), HashKey: s.HashKey, Ignore: ignore,
		InstallNamespace: s.Object.InstallNamespaceOrDefault(),
	})
	if err != nil {
		return pipeline.Stop, err
	}
	made := plan.Make(observed)
	made.Prune, made.Keeping = nil, true
	if s.resolved.Due = len(made.Violations) > 0 || made.Count(plan.Create, plan.Update, plan.Adopt) > 0; s.resolved.Due {
		return pipeline.Continue, nil
	}
	if s.resolved.LeavesDrift(&s.Subject) {
		return pipeline.Continue, r.leave(ctx, s, &made)
	}
	return pipeline.Continue, r.applyRepair(ctx, s, made, observed)
}

// applyRepair executes a repair. Failed writes are retried and reported by a full
// comparison.
func (r *Reconciler) applyRepair(ctx context.Context, s *state, made plan.Plan, observed plan.Input) error {
	r.recordConflicts(ctx, s, made)
	result, err := apply.Apply(ctx, s.resolved.Access.Client, made, r.options(s))
	s.delivered.Repaired = &stage.Repair{Applied: &result, Left: left(made, result, observed)}
	s.note.Applying.Wrote = s.Now
	if recorded := s.listed.Record(&s.Subject, s.listed.Inventory.With(result.Inventory.Entries...)); recorded != nil {
		return recorded
	}
	if err != nil {
		return err
	}
	s.resolved.Due = !result.Complete()
	r.calm(s, made, result)
	return nil
}

// left lists the state of the objects after a repair.
func left(made plan.Plan, result apply.Result, observed plan.Input) []drift.Object {
	var list []drift.Object
	for _, action := range made.Actions() {
		entry, listed := result.Inventory.Get(action.ID)
		if !listed || !entry.Confirmed() {
			continue
		}
		version := result.Versions[action.ID]
		if version == "" {
			version = observed.Live[action.ID].ResourceVersion
		}
		list = append(list, drift.Object{Entry: entry, Resource: action.Resource, Version: version, Health: result.Live[action.ID] != nil})
	}
	return list
}

// calm ignores further events of objects that another client wrote without causing
// drift, until the next full comparison: occasional writes then cost no request each.
func (r *Reconciler) calm(s *state, made plan.Plan, result apply.Result) {
	restored := map[inventory.ID]bool{}
	for _, outcome := range result.Outcomes {
		restored[outcome.ID] = outcome.Kind == apply.Repaired
	}
	key, until := s.Key(), s.note.Checked.Add(s.Object.Spec.IntervalOrDefault())
	for _, action := range made.Actions() {
		if !restored[action.ID] && (action.Verb == plan.Settle || action.Verb == plan.Unchanged) {
			r.watches.Calm(key, action.ID, until.Add(time.Second), true)
		}
	}
}

// entriesOf is the part of the inventory that lists the objects.
func (s *state) entriesOf(objects []*unstructured.Unstructured) inventory.Inventory {
	some := inventory.Inventory{Target: s.listed.Inventory.Target}
	for _, object := range objects {
		if entry, listed := s.listed.Inventory.Get(inventory.IDOf(object)); listed {
			some = some.With(entry)
		}
	}
	return some
}
