// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"iter"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// Subscribe passes the final state of the objects to the watches, which report later
// changes.
func (st *Stage) Subscribe(in *Input, err error) {
	key, of := in.Key(), in
	if in.Kept != nil {
		of = in.Kept
	}
	switch {
	case in.Resolved.Access.Client == nil && failure.Of(err).Reason == v1alpha1.ReasonAccountNotFound:
		st.Watches.Drop(key)
	case of.Resolved.Due && of.Decided.Plan != nil && of.Delivered.Applied != nil:
		st.Watches.Set(key, of.subscription(of.Decided.Tracked()))
	case len(of.Decided.Untouched.Entries) > 0 && in.Delivered.Repaired == nil:
		st.Watches.Set(key, of.subscription(of.Decided.Untouched.All()))
	case in.Delivered.Repaired != nil:
		st.Watches.Update(key, in.Delivered.Repaired.Left)
	}
	in.Settled.Gaps = st.Watches.Gaps(key)
	st.follow(in, err)
	if of.Settled.Health != nil {
		st.Watches.Looked(key, of.Settled.Health.Seen)
	}
}

// subscription is the subscription to changes of objects.
func (in *Input) subscription(objects iter.Seq[observe.Sighted]) drift.Subscription {
	subscription := in.Resolved.Subscription(in.Subject, in.Listed)
	healthy := map[inventory.ID]bool{}
	for _, object := range in.Note.Health.Objects {
		healthy[object.ID] = true
	}
	subscription.Objects = make([]drift.Object, 0, in.Listed.Current().Len())
	next := 0
	for object := range objects {
		entry, at, listed := in.Listed.Inventory().Near(object.ID, next)
		next = at + 1
		if !listed || !entry.Recorded() {
			continue
		}
		if object.Version == "" {
			object.Version = in.version(object.ID)
		}
		subscription.Objects = append(subscription.Objects, drift.Object{
			Entry: entry, Resource: object.Resource, Version: object.Version,
			Health: healthy[object.ID], Looked: in.Note.Health.Looked[object.ID].Version,
		})
	}
	return subscription
}

// version is the resource version at which an object was written or compared.
func (in *Input) version(id inventory.ID) string {
	if applied := in.Delivered.Applied; applied != nil && applied.Versions[id] != "" {
		return applied.Versions[id]
	}
	return in.Decided.Version(id)
}

// news are the objects to check after a full comparison: those that were written, and
// those that changed since they were last seen healthy.
func (in *Input) news() []plan.Object {
	moved := map[inventory.ID]bool{}
	for _, object := range in.moved() {
		moved[object.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(in.Note.Health.Objects), func(o plan.Object) bool {
		_, written := in.Delivered.Applied.Versions[o.ID] // of kinds that only expressions judge there is no Live
		return !written && !moved[o.ID]
	})
}

// moved are the objects that changed since they were last seen healthy.
func (in *Input) moved() []plan.Object {
	return slices.DeleteFunc(slices.Clone(in.Note.Health.Objects), func(o plan.Object) bool {
		sight, looked := in.Note.Health.Looked[o.ID]
		return looked && sight.Healthy && sight.Version == in.Decided.Version(o.ID)
	})
}

// first are the objects to check without a full comparison: those that were not
// healthy, those that changed since, and those that were repaired in this reconcile.
func (in *Input) first() []plan.Object {
	wanted := map[inventory.ID]bool{}
	for _, object := range in.Note.Health.Unhealthy {
		wanted[object.ID] = true
	}
	for _, id := range in.Resolved.Found.Changed {
		wanted[id] = true
	}
	for id := range in.Delivered.Repaired.Live() {
		wanted[id] = true
	}
	var list []plan.Object
	for _, object := range in.Note.Health.Objects {
		if wanted[object.ID] {
			list = append(list, object)
		}
	}
	return list
}

// watched tells that all objects with health checks are watched; those of
// spec.health.checks are not.
func (in *Input) watched() bool {
	return in.Resolved.Found.Watched && len(in.Object.Spec.Health.Checks) == 0
}

// rest are the objects to check when the first ones are healthy: none if all are
// watched, and those that changed since they were last seen healthy if all were compared.
func (in *Input) rest(first []plan.Object) []plan.Object {
	if in.watched() {
		return nil
	}
	if len(in.Decided.Untouched.Entries) > 0 && len(in.Object.Spec.Health.Checks) == 0 {
		return without(in.moved(), first)
	}
	return without(in.Note.Health.Objects, first)
}

// follow subscribes to changes of the inputs.
func (st *Stage) follow(in *Input, err error) {
	key := in.Key()
	switch failed := pipeline.FailedStep(err); {
	case in.Resolved.Inputs.Sought && len(in.Resolved.Inputs.Needed) == 0:
		st.Names.Drop(key)
		st.Scrubs.Forget(key)
	case len(in.Resolved.Inputs.Readings) > 0:
		st.Names.Set(key, in.Resolved.Access.Local, failed == stage.StepInputs || failed == stage.StepConvert, in.Resolved.Inputs.Readings)
	}
	if len(in.Resolved.Inputs.Needed) > 0 {
		in.Settled.Gaps = append(st.Names.Gaps(key), in.Settled.Gaps...)
	}
}
