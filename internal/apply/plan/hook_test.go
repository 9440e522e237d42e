// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

var job = inventory.ID{Group: "batch", Kind: "Job", Namespace: "shop", Name: "job"}

func hookOf(name string, weight int, events ...string) plan.HookObject {
	id := job
	id.Name = name
	return plan.HookObject{HookTerms: plan.HookTerms{Events: events, Weight: weight}, Object: desired(id, "")}
}

// Hooks run before the operation and after it, by weight, and in the order given.
func TestHookRuns(t *testing.T) {
	hooks := []plan.HookObject{
		hookOf("late", 5, plan.PreInstall, plan.PreUpgrade), hookOf("a", 0, plan.PreInstall), hookOf("b", 0, plan.PreInstall, plan.PostInstall),
		hookOf("early", -5, plan.PreInstall), hookOf("gone", 0, plan.PreDelete),
	}
	for operation, want := range map[plan.Operation][]string{
		plan.Install:  {"pre-install early", "pre-install a", "pre-install b", "pre-install late", "post-install b"},
		plan.Upgrade:  {"pre-upgrade late"},
		plan.Removing: {"pre-delete gone"},
		plan.Adopting: nil,
	} {
		var got []string
		for _, run := range plan.HookRuns(hooks, operation) {
			got = append(got, run.Event+" "+run.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s runs %v, want %v", operation, got, want)
		}
	}
}

// The first plan installs a bundle, or adopts an existing installation.
func TestFirstOperation(t *testing.T) {
	workload := inventory.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	act := func(id inventory.ID, verb plan.Verb) plan.Action {
		return plan.Action{Object: desired(id, ""), Verb: verb}
	}
	for name, tc := range map[string]struct {
		actions []plan.Action
		want    plan.Operation
	}{
		"nothing is there":   {[]plan.Action{act(one, plan.Create), act(workload, plan.Create)}, plan.Install},
		"some data was kept": {[]plan.Action{act(one, plan.Adopt), act(workload, plan.Create)}, plan.Install},
		"it runs":            {[]plan.Action{act(one, plan.Create), act(workload, plan.Adopt)}, plan.Adopting},
		"all of it is there": {[]plan.Action{act(one, plan.Adopt)}, plan.Adopting},
	} {
		if got := (plan.Plan{Stages: []plan.Stage{{Actions: tc.actions}}}).First(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// Hooks are not objects of the plan: it neither creates them nor prunes them while the bundle contains
// them, and deletes the remaining ones of others without counting. A hook that belongs to another owner,
// or is also an object, is refused.
func TestHooksInAPlan(t *testing.T) {
	listed := inventory.Entry{ID: job, Version: "v1", Mark: inventory.RunOnce}
	in := plan.Input{
		Owner: owner, Desired: []plan.Object{desired(one, "")}, Hooks: []plan.HookObject{hookOf("job", 0, plan.PreInstall)},
		Previous: inventory.New("target", confirmed(one), listed), Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{one: ours(), job: ours()}},
		Rules: plan.Rules{Pruning: pruning.Policy{Limit: &pruning.Limit{}}},
	}
	p := plan.Make(in)
	if entry, _ := p.Inventory.Get(job); len(p.Violations) > 0 || len(p.Prune) > 0 || !p.Quiet() || entry != listed {
		t.Errorf("it stays: %+v, %v", p, entry)
	}
	lost := in
	lost.Previous = inventory.New("target", confirmed(one), confirmed(job)) // as it is found by its labels
	if entry, _ := plan.Make(lost).Inventory.Get(job); entry.Mark != inventory.RunOnce {
		t.Errorf("the mark that was lost: %+v", entry)
	}
	in.Hooks = nil
	if p := plan.Make(in); p.Deletions() != 1 || p.Held != nil || len(p.Pruned()) > 0 || len(p.Destroys(in.Previous)) > 0 {
		t.Errorf("it is deleted, without a need for approval: %+v", p)
	}
	in.Hooks = []plan.HookObject{hookOf("job", 0, plan.PreInstall)}
	in.Previous, in.Live[job] = inventory.New("target", confirmed(one)), ownership.Live{Tool: "Helm release shop/web"}
	if p := plan.Make(in); len(p.Violations) != 1 || p.Violations[0].Rule != violation.Collision {
		t.Errorf("it is Helm's: %v", p.Violations)
	}
	in.Hooks[0].ID = one
	if p := plan.Make(in); len(p.Violations) != 1 || p.Violations[0].Rule != violation.Duplicate {
		t.Errorf("it is an object, too: %v", p.Violations)
	}
}
