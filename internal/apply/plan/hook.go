// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// Events at which hooks run, as Helm names them.
const (
	PreInstall  = "pre-install"
	PostInstall = "post-install"
	PreUpgrade  = "pre-upgrade"
	PostUpgrade = "post-upgrade"
	PreDelete   = "pre-delete"
	PostDelete  = "post-delete"
)

// Policies for deleting the object of a hook after it ran. Before it runs again, the object
// of the last run is deleted in any case.
const (
	HookSucceeded = "hook-succeeded"
	HookFailed    = "hook-failed"
)

// HookTerms say when an object runs once, and when it is deleted.
type HookTerms struct {
	Events   []string `json:"events"`
	Weight   int      `json:"weight,omitempty"`
	Policies []string `json:"policies,omitempty"`
}

// Hook is a rendered object of a bundle that runs once at some events.
type Hook struct {
	HookTerms

	Object *unstructured.Unstructured `json:"object"`
}

// HookObject is a Hook with a completed object: as it will be applied.
type HookObject struct {
	HookTerms
	Object
}

// Operation is the kind of change that hooks run before and after.
type Operation string

const (
	// Install: the deployment applied nothing before.
	Install Operation = "Install"
	// Upgrade: the plan differs from what was applied before.
	Upgrade Operation = "Upgrade"
	// Removal: all of it is deleted.
	Removing Operation = "Delete"
	// Adopting: the deployment adopts an existing installation; no hook runs.
	Adopting Operation = "Adopt"
)

// eventsOf are the events before and after an operation.
var eventsOf = map[Operation][2]string{
	Install: {PreInstall, PostInstall}, Upgrade: {PreUpgrade, PostUpgrade}, Removing: {PreDelete, PostDelete},
}

// HookRun is one run of a hook.
type HookRun struct {
	HookObject

	Event string
	After bool // it runs after the operation, not before
}

// String describes the run: "pre-install hook Job.batch shop/migrate".
func (h HookRun) String() string { return HookText(h.Event, h.ID) }

// HookText names the hook of an event.
func HookText(event string, id inventory.ID) string { return fmt.Sprintf("%s hook %s", event, id) }

// HookRuns are the runs of an operation in their order: those before it first, of each
// event by weight, and of one weight in the given order.
func HookRuns(hooks []HookObject, of Operation) []HookRun {
	sorted := slices.Clone(hooks)
	slices.SortStableFunc(sorted, func(a, b HookObject) int { return a.Weight - b.Weight })
	var runs []HookRun
	for at, event := range eventsOf[of] {
		for _, hook := range sorted {
			if event != "" && slices.Contains(hook.Events, event) {
				runs = append(runs, HookRun{HookObject: hook, Event: event, After: at == 1})
			}
		}
	}
	return runs
}

// Rendered are the objects of hooks.
func Rendered(hooks []Hook) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, 0, len(hooks))
	for _, hook := range hooks {
		objects = append(objects, hook.Object)
	}
	return objects
}

// Groundwork is how many of the stages precede the hooks of a plan: namespaces,
// certificates and CRDs, which hooks may need.
func (p Plan) Groundwork() int {
	at := slices.IndexFunc(p.Stages, func(stage Stage) bool {
		return slices.ContainsFunc(stage.Actions, func(action Action) bool { return !ground[applyStage(action.Object)] })
	})
	if at < 0 {
		return len(p.Stages)
	}
	return at
}

// First tells what the first plan of a deployment does: it installs,
// or adopts an existing installation.
func (p Plan) First() Operation {
	adopted, created := 0, 0
	for action := range p.Actions() {
		switch {
		case action.Verb == Adopt && applyStage(action.Object) == stageWorkloads:
			return Adopting
		case action.Verb == Adopt:
			adopted++
		case action.Verb == Create && !action.Untracked:
			created++
		}
	}
	if adopted > 0 && created == 0 {
		return Adopting
	}
	return Install
}

// hooks checks the hooks against the desired and the existing objects, and lists those in
// the inventory: they are not pruned while the bundle contains them.
func (in Input) hooks(desired []Object) (listed []inventory.Entry, violations []violation.Violation) {
	objects := map[inventory.ID]bool{}
	for _, object := range desired {
		objects[object.ID] = true
	}
	for _, hook := range in.Hooks {
		if objects[hook.ID] {
			violations = append(violations, violation.Violation{
				Rule: violation.Duplicate, Object: hook.ID,
				Message: fmt.Sprintf("%s is in the bundle as a hook, and as an object", hook.ID),
				Remedy:  "give one of them another name",
			})
			continue
		}
		if live, exists := in.Live[hook.ID]; exists {
			if forbidden := in.Lineage.Forbids(hook.ID, live); forbidden != nil {
				violations = append(violations, *forbidden)
				continue
			}
			entry, _ := in.Previous.Get(hook.ID)
			// objects that no bundle may contain are reported by guarded
			if in.guards(hook.Object, ownership.Owned) == nil && in.claim(entry, live) == ownership.Foreign {
				violations = append(violations, violation.Collides(live, hook.ID, in.Owner))
				continue
			}
		}
		if entry, found := in.Previous.Get(hook.ID); found {
			entry.Mark = inventory.RunOnce
			listed = append(listed, entry)
		}
	}
	return listed, violations
}
