// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"iter"

	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
)

// Decided is the plan and what is known about it: the result of the steps plan to approve.
type Decided struct {
	ApprovalState *approval.State
	Plan          *plan.Plan
	Observed      map[inventory.ID]ownership.Live // the live objects that the plan was made from
	// Untouched are the objects if comparing their metadata has shown that all of them are as they were left. There is no plan then.
	Untouched observe.Untouched
	Drift     Drift
	// Accepted: the plan has no violations, and is executed or waits for an approval.
	Accepted bool
	// Successors are objects that the API server refuses until deletions of the plan are over.
	Successors dryrun.Successors
	// GivenAway are deletions of a plan that is refused, of objects that other deployments want: these are released to them.
	GivenAway []plan.DeletionStage
	// Passed are the objects with a dry run that passed in this reconcile. Tried: some did, and are remembered.
	Passed map[inventory.ID]bool
	Tried  bool
	// LeftOut lists the objects of the last applied revision that cannot be compared with
	// the cluster or corrected, and why.
	LeftOut  []string
	Warnings []string
}

// Drop releases the contents of the objects, but keeps the decisions.
func (d *Decided) Drop() {
	if d.Plan == nil {
		return
	}
	for i := range d.Plan.Stages {
		for j := range d.Plan.Stages[i].Actions {
			d.Plan.Stages[i].Actions[j].Desired = nil
		}
	}
}

// Tracked are the objects of the plan that the inventory lists.
func (d *Decided) Tracked() iter.Seq[observe.Sighted] {
	return func(yield func(observe.Sighted) bool) {
		for action := range d.Plan.Actions() {
			if !action.Untracked && !yield(observe.Sighted{ID: action.ID, Resource: action.Resource}) {
				return
			}
		}
	}
}

// Version is the resource version at which an object was compared; empty if it does not exist.
func (d *Decided) Version(of inventory.ID) string {
	if d.Observed == nil {
		return d.Untouched.Version(of)
	}
	return d.Observed[of].ResourceVersion
}

// LeavesNothing tells that all of the bundle is there once the plan is executed, and nothing else of what was installed.
func (d *Decided) LeavesNothing() bool {
	return len(d.Plan.Skipped) == 0 && len(d.Plan.Kept) == 0 && len(d.Plan.Prune) == 0 && d.Plan.Held == nil
}

// Writes tells whether the plan sends anything to an object.
func (d *Decided) Writes() bool {
	if d.Plan == nil {
		return false
	}
	for action := range d.Plan.Actions() {
		if action.Writes() {
			return true
		}
	}
	return false
}
