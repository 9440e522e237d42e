// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Verb is what is done to a desired object.
type Verb string

const (
	// Create: it does not exist.
	Create Verb = "Create"
	// Update: the desired content changed, or was never applied completely.
	Update Verb = "Update"
	// Adopt: it exists and was somebody else's; it is taken over, and what they set and
	// the bundle does not goes.
	Adopt Verb = "Adopt"
	// Recreate: it is deleted and created anew, for fields of it cannot change.
	Recreate Verb = "Recreate"
	// Repair: the live object drifted from what was applied.
	Repair Verb = "Repair"
	// Settle: it was recreated or written without a visible change to our
	// fields; one apply, mostly a no-op, makes sure.
	Settle Verb = "Settle"
	// Unchanged: nothing is asked or written.
	Unchanged Verb = "Unchanged"
	// Wait: it is being deleted; it can be applied when it is gone.
	Wait Verb = "Wait"
)

// Action is what is done to one desired object, and why.
type Action struct {
	Object
	Verb     Verb
	Reason   string
	Previous inventory.Entry // zero when it was never planned before
	Mark     inventory.Mark  // of the entry in the inventory
	// At is the resource version at which all fields of ours may be taken back, whoever
	// holds them: the content is what was applied before. Empty: it is not known.
	At string
	// Seen is of the object when the plan was made; zero when it did not exist.
	Seen inventory.Hash
	// Untracked: it does not enter the inventory and is never deleted.
	Untracked bool
}

// Writes tells whether the action sends a request.
func (a Action) Writes() bool { return a.Verb != Unchanged && a.Verb != Wait }

// Exists tells that the object was there when the plan was made.
func (a Action) Exists() bool { return !a.Seen.IsZero() }

// Known tells that the object exists and its content is what was written before, or was
// begun to be written: fields of it that others hold now were ours.
func (a Action) Known() bool {
	return a.Exists() && !a.Previous.Rendered.IsZero() && a.Previous.Rendered == a.Rendered && (a.Previous.Confirmed() || a.Previous.Begun)
}

// Alters tells whether the object exists and gets content that it did not have from us.
func (a Action) Alters() bool { return a.Verb == Update || a.Verb == Adopt || a.Verb == Recreate }

// Stage is a set of actions that may run in parallel.
type Stage struct {
	Name string
	// Phase that it belongs to. It waits until the objects of lower ones are healthy.
	Phase   int
	Actions []Action
}

// Plan is what will be done, in order.
type Plan struct {
	Owner inventory.Owner
	// Protection under which objects are adopted.
	Protection Protection
	// Upgrade: something of an earlier plan was applied already.
	Upgrade bool
	// Keeping: what is planned was applied before, all of it, while a newer revision
	// fails. Nothing is let go then.
	Keeping bool
	// Stages hold every desired object that nothing forbids. Empty stages are left out.
	Stages []Stage
	// Hooks run once before and after an operation, each object by itself: see HookRuns.
	Hooks []HookObject
	// PruneFirst and Prune are what the inventory lists and the bundle does not contain
	// any more: the one to be carried out before the stages, the other after health.
	PruneFirst, Prune []DeletionStage
	// Held is what is left out of these because it would be too much; nil: nothing.
	Held *Held
	// Pruning says how objects are let go, in the end.
	Pruning Pruning
	// Unreadable are desired objects that the account may not look at, which is among
	// the violations.
	Unreadable []Object
	// Skipped are objects of the bundle that are left out for now. Sorted.
	Skipped []inventory.ID
	// Absent are the namespaces that do not exist, of those that desired objects go
	// into or are, whether or not the plan brings them. Sorted.
	Absent []string
	// LeftOut are, of a plan that only keeps what is applied, the objects that cannot be
	// kept as they were applied, and why: nothing of them is planned. Sorted.
	LeftOut []Violation
	// Violations forbid to carry out the plan. Sorted.
	Violations []Violation
	// Warnings are what people should know and nothing is refused for. Sorted.
	Warnings []string
	// Inventory is the previous one together with what is planned. It must be
	// stored before the first write.
	Inventory inventory.Inventory
}

// Recreates says of objects that fields of them cannot change. What is adopted stays
// an adoption.
func (p Plan) Recreates(ids []inventory.ID) {
	for _, stage := range p.Stages {
		for at := range stage.Actions {
			if action := &stage.Actions[at]; action.Verb == Update && slices.Contains(ids, action.ID) {
				action.Verb, action.Reason = Recreate, "has fields that cannot be changed"
			}
		}
	}
}

// Actions are the actions of all stages in order.
func (p Plan) Actions() []Action {
	var all []Action
	for _, stage := range p.Stages {
		all = append(all, stage.Actions...)
	}
	return all
}

// Objects are the desired objects that the inventory will list, in order.
func (p Plan) Objects() []Object {
	var objects []Object
	for _, action := range p.Actions() {
		if !action.Untracked {
			objects = append(objects, action.Object)
		}
	}
	return objects
}

// Count is the number of actions with one of the verbs.
func (p Plan) Count(verbs ...Verb) int {
	count := 0
	for _, action := range p.Actions() {
		for _, verb := range verbs {
			if action.Verb == verb {
				count++
			}
		}
	}
	return count
}

// Deletions is the number of objects that pruning will delete.
func (p Plan) Deletions() int {
	count := 0
	for _, stage := range slices.Concat(p.PruneFirst, p.Prune) {
		for _, deletion := range stage.Deletions {
			if deletion.Deletes() {
				count++
			}
		}
	}
	return count
}

// Quiet tells that the cluster is as planned: nothing to write, to delete or to wait for.
func (p Plan) Quiet() bool {
	return len(p.Violations) == 0 && len(p.Prune)+len(p.PruneFirst) == 0 && p.Count(Unchanged) == len(p.Actions())
}

// Summary says in one line what the plan does: "2 to create, 1 to delete".
func (p Plan) Summary() string {
	parts := []struct {
		count int
		what  string
	}{
		{len(p.Violations), "refused"},
		{p.Count(Create), "to create"},
		{p.Count(Adopt), "to adopt"},
		{p.Count(Update), "to update"},
		{p.Count(Recreate), "to recreate"},
		{p.Count(Repair), "to repair"},
		{p.Count(Settle), "to check"},
		{p.Deletions(), "to delete"},
		{p.Held.len(), "to delete, which is held"},
		{p.Count(Wait), "being deleted"},
	}
	var words []string
	for _, part := range parts {
		if part.count > 0 {
			words = append(words, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	if len(words) == 0 {
		return fmt.Sprintf("%d objects, nothing to do", len(p.Actions()))
	}
	return strings.Join(words, ", ")
}
