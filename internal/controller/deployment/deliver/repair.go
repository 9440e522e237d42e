// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/spec/planning"
)

// Repair corrects drift that watches reported, from what was applied last. That was
// planned and accepted before, so it only updates existing objects and adopts none. If
// that is not enough, it returns true: everything has to be compared, as if the interval were over.
func (st *Stage) Repair(ctx context.Context, in *Input) (whole bool, err error) {
	if len(in.Resolved.Found.Drifted) == 0 {
		return false, nil
	}
	desired, complete, err := st.Recent.ReadSome(st.Snapshots, string(in.Object.UID), in.Resolved.Revision(), in.Resolved.Found.Drifted)
	if err != nil && !snapshot.Unusable(err) {
		return false, err
	}
	if !complete || in.Object.Status.Applied.Revision != in.Resolved.Revision() {
		return true, nil
	}
	made, observed, enough, err := planning.MakeRepair(ctx, in.Resolved.Access.Client, planning.Repair{
		Deployment: in.Object, Owner: in.Owner, Objects: desired, Listed: in.entriesOf(desired), HashKey: in.HashKey,
	})
	if err != nil {
		return false, stage.Unplannable(err)
	}
	if !enough {
		return true, nil
	}
	if in.Resolved.LeavesDrift(in.Subject) {
		in.Delivered.Drift, err = stage.LeaveDrift(ctx, in.Resolved.Access.Client, in.Subject, &made)
		return false, err
	}
	return st.applyRepair(ctx, in, made, observed)
}

// applyRepair executes a repair. Failed writes are retried and reported by a full
// comparison.
func (st *Stage) applyRepair(ctx context.Context, in *Input, made plan.Plan, observed plan.Input) (whole bool, err error) {
	st.recordConflicts(ctx, in, made)
	result, err := apply.Apply(ctx, in.Resolved.Access.Client, made, st.options(in))
	in.Delivered.Repaired = &stage.Repair{Applied: &result, Left: left(made, result, observed)}
	in.Note.Applying.Wrote = in.Now
	if recorded := in.Listed.RecordRepair(in.Subject, result.Inventory.Entries); recorded != nil {
		return false, recorded
	}
	if err != nil {
		return false, err
	}
	st.ignoreHarmlessWrites(in, made, result)
	return !result.Complete(), nil
}

// left lists the state of the objects after a repair.
func left(made plan.Plan, result apply.Result, observed plan.Input) []drift.Object {
	var list []drift.Object
	for action := range made.Actions() {
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

// ignoreHarmlessWrites ignores further events of objects that another client wrote without causing
// drift, until the next full comparison: occasional writes then cost no request each.
func (st *Stage) ignoreHarmlessWrites(in *Input, made plan.Plan, result apply.Result) {
	restored := map[inventory.ID]bool{}
	for _, outcome := range result.Outcomes {
		restored[outcome.ID] = outcome.Kind == apply.Repaired
	}
	key, until := in.Key(), in.Note.Checked.Add(effective.Interval(&in.Object.Spec))
	for action := range made.Actions() {
		if !restored[action.ID] && (action.Verb == plan.Settle || action.Verb == plan.Unchanged) {
			st.Watches.IgnoreDrift(key, action.ID, until.Add(time.Second), true)
		}
	}
}

// entriesOf is the part of the inventory that lists the objects.
func (in *Input) entriesOf(objects []*unstructured.Unstructured) inventory.Inventory {
	some := inventory.Inventory{Target: in.Listed.Current().Target()}
	for _, object := range objects {
		if entry, listed := in.Listed.Current().Get(inventory.IDOf(object)); listed {
			some = some.With(entry)
		}
	}
	return some
}
