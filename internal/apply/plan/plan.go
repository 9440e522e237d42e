// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/autoscaling"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/plural"
)

// Verb is the kind of an action.
type Verb string

const (
	// Create: it does not exist.
	Create Verb = "Create"
	// Update: the desired content changed, or was never applied completely.
	Update Verb = "Update"
	// Adopt: it exists and had another owner; it is adopted, and fields of the former owner
	// that the bundle does not set are removed.
	Adopt Verb = "Adopt"
	// Recreate: it is deleted and created again, for fields of it are immutable.
	Recreate Verb = "Recreate"
	// Repair: the live object drifted from what was applied.
	Repair Verb = "Repair"
	// Settle: it was recreated or written without a visible change to our
	// fields; one apply, mostly a no-op, makes sure.
	Settle Verb = "Settle"
	// Unchanged: no request is sent.
	Unchanged Verb = "Unchanged"
	// Wait: it is being deleted; it can be applied when it is gone.
	Wait Verb = "Wait"
)

// Action is the action for one desired object, and why.
type Action struct {
	Object
	Verb     Verb
	Reason   string
	Previous inventory.Entry // zero when it was never planned before
	Mark     inventory.Mark  // of the entry in the inventory
	// At is the resource version at which all fields of ours may be taken back from any
	// manager: the content is what was applied before. Empty: it is not known.
	At string
	// Seen is of the object when the plan was made; zero when it did not exist.
	Seen inventory.Hash
	// OnlyCreate: it is applied on condition that it does not exist.
	OnlyCreate bool
	// Untracked: it is not recorded in the inventory and never deleted.
	Untracked bool
	// Handover is what becomes of its fields that autoscalers set.
	Handover autoscaling.Handover
}

// Writes tells whether the action sends a request.
func (a Action) Writes() bool { return a.Verb != Unchanged && a.Verb != Wait }

// Exists tells that the object existed when the plan was made.
func (a Action) Exists() bool { return !a.Seen.IsZero() }

// Known tells that the object exists and its content is what was written before, or was
// begun to be written: its fields that other managers hold now were ours.
func (a Action) Known() bool {
	return a.Exists() && !a.Previous.Rendered.IsZero() && a.Previous.Rendered == a.Rendered && (a.Previous.Confirmed() || a.Previous.Begun)
}

// Alters tells whether the object exists and gets content that we did not apply before.
func (a Action) Alters() bool { return a.Verb == Update || a.Verb == Adopt || a.Verb == Recreate }

// Stage is a set of actions that may run in parallel.
type Stage struct {
	Name string
	// Phase of the stage. It waits until the objects of lower ones are healthy.
	Phase   int
	Actions []Action
}

// Plan is what will be done, in order.
type Plan struct {
	Owner inventory.Owner
	// Protection under which objects are adopted.
	Protection ownership.Protection
	// Upgrade: objects of an earlier plan were applied already.
	Upgrade bool
	// Keeping: all planned objects were applied before, while a newer revision
	// fails. Nothing is deleted or released then.
	Keeping bool
	// Stages hold every desired object without a violation. Empty stages are left out.
	Stages []Stage
	// Hooks run once before and after an operation, each object by itself: see HookRuns.
	Hooks []HookObject
	PruneStages
	// Unreadable are desired objects that the ServiceAccount may not read; they are also among
	// the violations.
	Unreadable []Object
	// Kept are CRDs of the bundle that stay as they are on the cluster: see Rules.Returning. Sorted.
	Kept []inventory.ID
	// Skipped are objects of the bundle of optional kinds that the cluster does not serve. Sorted.
	Skipped []inventory.ID
	// Absent are the namespaces that do not exist, among the desired objects and their
	// namespaces, whether or not the plan creates them. Sorted.
	Absent []string
	// LeftOut are, of a plan that only keeps what is applied, the objects that cannot be
	// kept, and why: no action is planned for them. Sorted.
	LeftOut []violation.Violation
	// Violations are the reasons why the plan must not be executed. Sorted.
	Violations []violation.Violation
	// Warnings are for users, and refuse nothing. Sorted.
	Warnings []string
	// Inventory is the previous one together with what is planned. It must be
	// stored before the first write.
	Inventory inventory.Inventory
}

// PruneStages are the objects of the inventory that the bundle does not contain any more.
type PruneStages struct {
	// PruneFirst are removed before the stages, Prune after health.
	PruneFirst, Prune []DeletionStage
	// Held is what is left out of these because of the limit; nil: nothing.
	Held *pruning.Held
	// Pruning says how objects are deleted or released, in the end.
	Pruning pruning.Policy
}

// Recreates turns the actions of objects with immutable fields into Recreate. An adoption
// stays an adoption.
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
func (p Plan) Actions() iter.Seq[*Action] {
	return func(yield func(*Action) bool) {
		for _, stage := range p.Stages {
			for at := range stage.Actions {
				if !yield(&stage.Actions[at]) {
					return
				}
			}
		}
	}
}

// Len is the number of actions.
func (p Plan) Len() (count int) {
	for _, stage := range p.Stages {
		count += len(stage.Actions)
	}
	return count
}

// Objects are the desired objects that the inventory will list, in order.
func (p Plan) Objects() []Object {
	objects := make([]Object, 0, p.Len())
	for action := range p.Actions() {
		if !action.Untracked {
			objects = append(objects, action.Object)
		}
	}
	return objects
}

// Count is the number of actions with one of the verbs.
func (p Plan) Count(verbs ...Verb) int {
	count := 0
	for action := range p.Actions() {
		if slices.Contains(verbs, action.Verb) {
			count++
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
	return len(p.Violations) == 0 && len(p.Prune)+len(p.PruneFirst) == 0 && p.Count(Unchanged) == p.Len()
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
		{p.Held.Len(), "to delete, which is held"},
		{p.Count(Wait), "being deleted"},
	}
	var words []string
	for _, part := range parts {
		if part.count > 0 {
			words = append(words, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	if len(words) == 0 {
		return plural.Of(p.Len(), "object") + ", nothing to do"
	}
	return strings.Join(words, ", ")
}
