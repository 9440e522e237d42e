// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// Make plans how to make the cluster match the rendered bundle. The same input
// gives the same plan, whatever the order of the desired objects.
func Make(in Input) Plan {
	plan := Plan{
		Owner: in.Owner, Keeping: in.Keeping, Protection: in.Protection,
		PruneStages: PruneStages{Pruning: in.Pruning}, Inventory: in.Previous, Hooks: in.Hooks,
	}
	plan.Upgrade = slices.ContainsFunc(in.Previous.Entries, inventory.Entry.Confirmed)
	plan.Skipped = slices.SortedFunc(slices.Values(in.Skipped), inventory.ID.Compare)
	if len(in.Desired)+len(in.Hooks)+len(in.Missing)+len(in.Invalid)+len(in.Skipped) == 0 {
		plan.Violations = []violation.Violation{emptyRender(in.Previous.Len())}
		return plan
	}
	desired, duplicates := unique(in.Desired)
	if in.Keeping {
		desired = in.notGivenAway(desired)
	}
	plan.Unreadable = in.unreadable(desired)
	plan.Absent = in.absent(desired)
	unreadable := unseen(plan.Unreadable)
	if in.Keeping {
		unreadable = in.unseenEach(plan.Unreadable)
	}
	actions, listed, refused := in.decideEach(desired)
	if in.createsNamespace(desired) {
		actions = append(actions, in.namespaceAction())
	}
	hooks, invalidHooks := in.hooks(desired)
	unsafe, upgradeWarnings := in.upgradeSafety(actions)
	actions, plan.Kept = in.keepDefinitions(actions)
	unmet, requirementWarnings := in.requirements()
	plan.Violations = violation.SortViolations(slices.Concat(
		in.Invalid, duplicates, in.missing(desired), unreadable, refused, unsafe, unmet, invalidHooks, in.guarded()))
	plan.Warnings = slices.Sorted(slices.Values(append(upgradeWarnings, requirementWarnings...)))
	if in.Keeping {
		actions = plan.leaveOut(actions)
	}
	plan.Stages = staged(actions)
	plan.prune(in, inventory.New(in.Previous.Target, slices.Concat(listed, in.left(), hooks)...))
	return plan
}

// decideEach decides what to do with each desired object. The inventory lists all of them, also those that cannot be read, are
// refused, or have a kind that is not served.
func (in Input) decideEach(desired []Object) (actions []Action, listed []inventory.Entry, refused []violation.Violation) {
	scalers := in.autoscalers(desired)
	for _, object := range desired {
		entry := inventory.Entry{ID: object.ID, Version: object.Resource.Version}
		if _, unreadable := in.Unreadable[object.ID]; !unreadable {
			action, violation := in.decide(object)
			entry.Mark = action.Mark
			if sight, found := in.Scaling[object.ID]; found {
				action.Handover = sight.Decide(object.ID, scalers)
			}
			if violation != nil {
				refused = append(refused, *violation)
			} else {
				actions = append(actions, action)
			}
		}
		listed = append(listed, entry)
	}
	for _, missing := range in.Missing {
		listed = append(listed, inventory.Entry{ID: missing.ID, Version: missing.Version})
	}
	return actions, listed, refused
}

// left are the skipped objects that the inventory lists already: their kind may be gone
// only for a moment, so they must not be forgotten.
func (in Input) left() []inventory.Entry {
	skipped := map[inventory.ID]bool{}
	for _, id := range in.Skipped {
		skipped[id] = true
	}
	var entries []inventory.Entry
	for _, entry := range in.Previous.Entries {
		bare := entry.ID // as in a bundle that does not set the namespace
		bare.Namespace = ""
		if skipped[entry.ID] || skipped[bare] {
			entries = append(entries, entry)
		}
	}
	return entries
}

func emptyRender(listed int) violation.Violation {
	return violation.Violation{
		Rule:    violation.EmptyRender,
		Message: fmt.Sprintf("the bundle renders no object; nothing is pruned of the %d that are installed", listed),
		Remedy:  "check path and format, or delete the BundleDeployment to remove what it installed",
	}
}

// unique sorts the objects by identity and reports those given more than once.
func unique(objects []Object) (kept []Object, violations []violation.Violation) {
	sorted := slices.Clone(objects)
	kept = make([]Object, 0, len(sorted))
	slices.SortStableFunc(sorted, func(a, b Object) int { return a.Compare(b.ID) })
	for i, object := range sorted {
		if i > 0 && sorted[i-1].ID == object.ID {
			violations = append(violations, violation.Violation{
				Rule: violation.Duplicate, Object: object.ID,
				Message: fmt.Sprintf("%s is in the bundle more than once", object.ID),
				Remedy:  "keep one",
			})
			continue
		}
		kept = append(kept, object)
	}
	return kept, violations
}

// absent are the namespaces that do not exist, among the desired objects
// and their namespaces.
func (in Input) absent(desired []Object) []string {
	var names []string
	for name, presence := range in.Namespaces {
		if presence == Absent {
			names = append(names, name)
		}
	}
	for _, object := range desired {
		if !ownership.IsNamespace(object.ID) {
			continue
		}
		_, exists := in.Live[object.ID]
		if _, hidden := in.Unreadable[object.ID]; !exists && !hidden {
			names = append(names, object.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// missing reports missing kinds and namespaces of the desired objects.
func (in Input) missing(desired []Object) []violation.Violation {
	var violations []violation.Violation
	for _, kind := range in.Missing {
		violations = append(violations, kind.violation(in.Facts))
	}
	brought := map[string]bool{in.CreateNamespace: true, "": true}
	for _, object := range desired {
		if ownership.IsNamespace(object.ID) {
			brought[object.Name] = true
		}
	}
	for name, presence := range in.Namespaces {
		switch {
		case presence == Terminating:
			violations = append(violations, violation.Violation{
				Rule: violation.NamespaceMissing, Object: inventory.ID{Kind: "Namespace", Name: name},
				Message: fmt.Sprintf("namespace %q is being deleted", name),
				Remedy:  "wait until it is gone and create it again, or install elsewhere",
			})
		case presence == Absent && !brought[name]:
			violations = append(violations, violation.Violation{
				Rule: violation.NamespaceMissing, Object: inventory.ID{Kind: "Namespace", Name: name},
				Message: fmt.Sprintf("namespace %q does not exist", name),
				Remedy:  "create it, or set spec.target.createNamespace when it is the install namespace",
			})
		}
	}
	return violations
}

func (m MissingKind) violation(facts requirement.Facts) violation.Violation {
	kind := schema.GroupVersionKind{Group: m.Group, Version: m.Version, Kind: m.Kind}
	violation := violation.Violation{
		Rule: violation.KindMissing, Object: m.ID,
		Message: fmt.Sprintf("%s: the cluster does not know kind %s of %s", m.ID, kind.Kind, kind.GroupVersion()),
		Remedy: facts.InstallOffered(kind, fmt.Sprintf("install the CRD that defines %s in group %q first", kind.Kind, kind.Group)) +
			", or name the kind in spec.apply.optionalKinds to leave its objects out until it is served",
	}
	if len(m.Served) > 0 {
		violation.Remedy = "it is served as " + strings.Join(m.Served, ", ")
	}
	return violation
}

// createsNamespace tells whether the install namespace has to be created in addition to
// the bundle's own objects.
func (in Input) createsNamespace(desired []Object) bool {
	return in.CreateNamespace != "" && in.Namespaces[in.CreateNamespace] == Absent &&
		!slices.ContainsFunc(desired, func(o Object) bool {
			return ownership.IsNamespace(o.ID) && o.Name == in.CreateNamespace
		})
}

// namespaceAction creates the install namespace without labels: it has no owner.
func (in Input) namespaceAction() Action {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(in.CreateNamespace)
	return Action{
		Object: Object{
			ID:      inventory.IDOf(namespace),
			Kind:    Kind{Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}},
			Desired: namespace,
		},
		Verb: Create, Reason: "spec.target.createNamespace is set", Untracked: true,
	}
}
