// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
)

// installed is an input with an inventory of so many ConfigMaps, all of them ours.
func installed(count int) plan.Input {
	in := plan.Input{Owner: owner, Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{}}}
	entries := make([]inventory.Entry, 0, count)
	for i := range count {
		id := configMap(i)
		entries = append(entries, confirmed(id))
		in.Live[id] = ours()
	}
	in.Previous = inventory.New("target", entries...)
	return in
}

func configMap(i int) inventory.ID {
	return inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("c%03d", i)}
}

// keep makes the first ConfigMaps desired.
func keep(in *plan.Input, count int) {
	for i := range count {
		in.Desired = append(in.Desired, desired(configMap(i), ""))
	}
}

func mark(in *plan.Input, mark inventory.Mark, from, to int) {
	for i := from; i < to; i++ {
		entry, _ := in.Previous.Get(configMap(i))
		entry.Mark = mark
		in.Previous = in.Previous.With(entry)
	}
}

// How much an upgrade may delete at once.
func TestPruneLimit(t *testing.T) {
	percent := func(n int) *pruning.Limit { return &pruning.Limit{Most: n, Percent: true} }
	tests := map[string]struct {
		reason        string
		before, after int
		limit         *pruning.Limit
		change        func(*plan.Input)
		held          int // objects; 0: nothing is held
	}{
		"half":            {"it is not more than half", 20, 10, percent(50), nil, 0},
		"more than half":  {"", 20, 9, percent(50), nil, 11},
		"few":             {"fewer than five are no disaster", 5, 1, percent(50), nil, 0},
		"five":            {"", 6, 1, percent(50), nil, 5},
		"all but nothing": {"0 % allows fewer than five deletions", 20, 16, percent(0), nil, 0},
		"nothing":         {"", 20, 15, percent(0), nil, 5},
		"anything":        {"", 20, 1, percent(100), nil, 0},
		"a number":        {"", 20, 13, &pruning.Limit{Most: 7}, nil, 0},
		"another number":  {"", 20, 12, &pruning.Limit{Most: 7}, nil, 8},
		"no limit":        {"", 20, 1, nil, nil, 0},
		"renamed": {"each is replaced by one of its kind", 20, 5, percent(50), func(in *plan.Input) {
			for i := range 15 {
				in.Desired = append(in.Desired, desired(configMap(100+i), ""))
			}
		}, 0},
		"renamed, applied already": {"the names were applied, and not healthy yet", 20, 5, percent(50), func(in *plan.Input) {
			for i := range 15 {
				id := configMap(100 + i)
				entry := confirmed(id)
				entry.Mark = inventory.Unproven
				in.Previous, in.Live[id] = in.Previous.With(entry), ours()
				in.Desired = append(in.Desired, desired(id, ""))
			}
		}, 0},
		"another kind": {"that is no rename", 20, 5, percent(50), func(in *plan.Input) {
			for i := range 15 {
				in.Desired = append(in.Desired, desired(inventory.ID{Kind: "Service", Namespace: "shop", Name: fmt.Sprint("s", i)}, ""))
			}
		}, 15},
		"another namespace": {"nor is that", 20, 5, percent(50), func(in *plan.Input) {
			for i := range 15 {
				in.Desired = append(in.Desired, desired(inventory.ID{Kind: "ConfigMap", Namespace: "else", Name: fmt.Sprint("c", i)}, ""))
			}
		}, 15},
		"never healthy": {"what a revision brought that never was healthy does not count", 20, 4, percent(50), func(in *plan.Input) {
			mark(in, inventory.Unproven, 8, 20)
		}, 0},
		"allowed before": {"it is going already, and the rest is not more than half", 20, 9, percent(50), func(in *plan.Input) {
			mark(in, inventory.Leaving, 9, 20)
		}, 0},
		"allowed, and more": {"what was allowed goes, and no more", 20, 2, percent(50), func(in *plan.Input) {
			mark(in, inventory.Leaving, 12, 20)
		}, 10},
		"kept anyhow": {"what is not deleted does not count", 20, 4, percent(50), func(in *plan.Input) { in.Pruning.Disabled = true }, 0},
		"not ours": {"nor do objects of other owners", 20, 4, percent(50), func(in *plan.Input) {
			for i := 4; i < 20; i++ {
				in.Live[configMap(i)] = ownership.Live{Owner: other, Managers: []string{other.Manager()}}
			}
		}, 0},
		"while a newer one fails": {"drift correction deletes nothing", 20, 4, percent(50), func(in *plan.Input) { in.Keeping = true }, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := installed(tc.before)
			in.Pruning.Limit = tc.limit
			keep(&in, tc.after)
			if tc.change != nil {
				tc.change(&in)
			}
			p := plan.Make(in)
			switch {
			case tc.held == 0 && p.Held != nil:
				t.Fatalf("%s: held %s", tc.reason, p.Held)
			case tc.held > 0 && (p.Held == nil || len(p.Held.Objects) != tc.held):
				t.Fatalf("%s: held %v, want %d objects", tc.reason, p.Held, tc.held)
			}
			if tc.held > 0 {
				checkHeld(t, p)
			}
		})
	}
}

// checkHeld expects held objects to be listed, and in no stage.
func checkHeld(t *testing.T, p plan.Plan) {
	t.Helper()
	for _, id := range p.Held.Objects {
		entry, listed := p.Inventory.Get(id)
		if !listed || entry.Mark == inventory.Leaving || slices.Contains(pruned(p.Prune), id) {
			t.Errorf("%s is held: listed %v with mark %q, and pruned", id, listed, entry.Mark)
		}
	}
	if text := p.Held.String(); !strings.Contains(text, "spec.prune.limit") || !strings.Contains(text, p.Held.Objects[0].String()) || len(text) > 1500 {
		t.Error(text)
	}
	if p.Quiet() == (p.Count(plan.Create) > 0) && len(p.Prune) == 0 {
		t.Errorf("quiet: %v, %s", p.Quiet(), p.Summary())
	}
}

func pruned(stages []plan.DeletionStage) []inventory.ID {
	var ids []inventory.ID
	for _, stage := range stages {
		for _, deletion := range stage.Deletions {
			ids = append(ids, deletion.ID)
		}
	}
	return ids
}

// RBAC objects do not count, and are held with the objects that need them.
func TestPruneLimitHoldsRights(t *testing.T) {
	in := installed(20)
	in.Pruning.Limit = &pruning.Limit{Most: 50, Percent: true}
	for i := range 30 {
		id := inventory.ID{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: "shop", Name: fmt.Sprint("r", i)}
		in.Previous, in.Live[id] = in.Previous.With(confirmed(id)), ours()
	}
	keep(&in, 20)
	if p := plan.Make(in); p.Held != nil || p.Deletions() != 30 {
		t.Errorf("only rights go: held %v, %s", p.Held, p.Summary())
	}
	in.Desired = in.Desired[:9]
	if p := plan.Make(in); p.Held == nil || p.Held.Exceeded.Count != 11 || p.Held.Exceeded.Of != 20 || len(p.Held.Objects) != 41 || p.Deletions() != 0 {
		t.Errorf("held %+v, %s", p.Held, p.Summary())
	}
}

// A deletion that was allowed stays so, however long it takes and whatever was healthy
// meanwhile; an object that comes back into the bundle counts again.
func TestPruneIsCountedOnce(t *testing.T) {
	in := installed(20)
	in.Pruning.Limit = &pruning.Limit{Most: 50, Percent: true}
	keep(&in, 5)
	for i := range 12 { // renamed
		in.Desired = append(in.Desired, desired(configMap(100+i), ""))
	}
	p := plan.Make(in)
	if p.Held != nil || p.Deletions() != 15 {
		t.Fatal(p.Summary())
	}
	proven, changed := p.Inventory.Proven(map[inventory.ID]bool{})
	if !changed {
		t.Fatal("nothing is new")
	}
	for i := range 12 {
		in.Live[configMap(100+i)] = ours()
	}
	in.Previous = proven
	if p = plan.Make(in); p.Held != nil || p.Deletions() != 15 {
		t.Fatalf("healthy, and 15 could not be deleted: %s", p.Summary())
	}
	in.Previous, in.Desired = p.Inventory, nil
	keep(&in, 20)
	if p = plan.Make(in); p.Inventory.Entries[19].Mark != "" {
		t.Errorf("it came back: %+v", p.Inventory.Entries[19])
	}
}

// The annotations of the live object and the spec decide about its deletion.
func TestEndings(t *testing.T) {
	crd := inventory.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.org"}
	tests := map[string]struct {
		reason         string
		id             inventory.ID
		annotations    map[string]string
		pruning        pruning.Policy
		prune, removal plan.How
		first          bool
	}{
		"plain":             {"", one, nil, pruning.Policy{}, plan.Delete, plan.Delete, false},
		"pruning is off":    {"a removal deletes nevertheless", one, nil, pruning.Policy{Disabled: true}, plan.Release, plan.Delete, false},
		"all are orphaned":  {"pruning deletes nevertheless", one, nil, pruning.Policy{Orphan: true}, plan.Delete, plan.Release, false},
		"not pruned":        {"", one, map[string]string{"satchel.dev/prune": "Disabled"}, pruning.Policy{}, plan.Release, plan.Delete, false},
		"misspelt":          {"a slip costs no data", one, map[string]string{"satchel.dev/prune": "false"}, pruning.Policy{}, plan.Release, plan.Delete, false},
		"pruned":            {"", one, map[string]string{"satchel.dev/prune": "enabled"}, pruning.Policy{}, plan.Delete, plan.Delete, false},
		"kept":              {"", one, map[string]string{"satchel.dev/deletion-policy": "Orphan"}, pruning.Policy{}, plan.Release, plan.Release, false},
		"kept, misspelt":    {"", one, map[string]string{"satchel.dev/deletion-policy": "keep"}, pruning.Policy{}, plan.Release, plan.Release, false},
		"not kept":          {"nothing is deleted for an annotation", one, map[string]string{"satchel.dev/deletion-policy": "Delete"}, pruning.Policy{Orphan: true}, plan.Delete, plan.Release, false},
		"kept by Helm":      {"as its own annotation", one, map[string]string{"helm.sh/resource-policy": "keep"}, pruning.Policy{}, plan.Release, plan.Release, false},
		"first":             {"", one, nil, pruning.Policy{First: true}, plan.Delete, plan.Delete, true},
		"first by itself":   {"", one, map[string]string{"satchel.dev/prune-timing": "BeforeApply"}, pruning.Policy{}, plan.Delete, plan.Delete, true},
		"later by itself":   {"", one, map[string]string{"satchel.dev/prune-timing": "AfterHealthy"}, pruning.Policy{First: true}, plan.Delete, plan.Delete, false},
		"CRD":               {"", crd, nil, pruning.Policy{}, plan.Release, plan.Release, false},
		"CRD, asked for":    {"", crd, nil, pruning.Policy{Definitions: true}, plan.DeleteUnused, plan.DeleteUnused, false},
		"CRD, and all stay": {"", crd, nil, pruning.Policy{Definitions: true, Orphan: true}, plan.DeleteUnused, plan.Release, false},
		"CRD, kept":         {"", crd, map[string]string{"satchel.dev/deletion-policy": "Orphan"}, pruning.Policy{Definitions: true}, plan.Release, plan.Release, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			live := ownership.LiveOf(annotated(tc.annotations), owner)
			in := plan.Input{
				Owner: owner, Previous: inventory.New("target", confirmed(tc.id)), Rules: plan.Rules{Pruning: tc.pruning},
				Desired: []plan.Object{desired(configMap(1), "")}, Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{tc.id: live}},
			}
			p, removal := plan.Make(in), plan.Removal(in)
			stages, none := p.Prune, p.PruneFirst
			if tc.first {
				stages, none = none, stages
			}
			if len(none) != 0 || len(stages) != 1 || stages[0].Deletions[0].How != tc.prune {
				t.Errorf("%s: pruned %+v, first %+v", tc.reason, p.Prune, p.PruneFirst)
			}
			if got := removal[0].Deletions[0]; got.How != tc.removal || got.Whole != (tc.pruning.Orphan) {
				t.Errorf("%s: removal %+v", tc.reason, got)
			}
		})
	}
}

// Objects that leave the bundle of a next revision still do while the former one is corrected, and are not counted again.
func TestCorrectedObjectsStillLeave(t *testing.T) {
	id := configMap(1)
	leaving := confirmed(id)
	leaving.Mark, leaving.Fields = inventory.Leaving, inventory.Unrecorded
	for keeping, want := range map[bool]inventory.Mark{true: inventory.Leaving, false: ""} {
		in := plan.Input{
			Owner: owner, Previous: inventory.New("", leaving), Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{id: ours()}},
			Desired: []plan.Object{desired(id, "")}, Keeping: keeping,
		}
		made := plan.Make(in)
		actions := slices.Collect(made.Actions())
		if len(actions) != 1 || actions[0].Mark != want || !actions[0].Writes() {
			t.Errorf("keeping %t: the actions are %+v, want one write with the mark %q", keeping, actions, want)
		}
		if entry, _ := made.Inventory.Get(id); entry.Mark != want {
			t.Errorf("keeping %t: the inventory has the mark %q, want %q", keeping, entry.Mark, want)
		}
	}
}

// TestF54WithheldPrune: what left the bundle because of a file that is left out is held, and nothing else; a limit holds the rest as well.
func TestF54WithheldPrune(t *testing.T) {
	link, two := []string{"app/b.yaml"}, []string{"app/b.yaml", "crds"}
	tests := map[string]struct {
		reason string
		change func(*plan.Input)
		held   int
		going  int
		text   []string
	}{
		"one of two": {"the other one left on purpose", func(in *plan.Input) { in.Withheld = map[inventory.ID][]string{configMap(9): link} }, 1, 1,
			[]string{`missing from the artifact: "app/b.yaml"; objects that came from them are kept: ConfigMap shop/c009.`, "replace the link with the target", "remove the link in a commit"}},
		"both": {"two links", func(in *plan.Input) {
			in.Withheld = map[inventory.ID][]string{configMap(8): two, configMap(9): link}
		}, 2, 0, []string{`"app/b.yaml", "crds"; objects that`, "replace the links with the target"}},
		"still there": {"the bundle contains it in another file", func(in *plan.Input) { in.Withheld = map[inventory.ID][]string{configMap(0): link} }, 0, 2, nil},
		"allowed before": {"its deletion was approved", func(in *plan.Input) {
			in.Withheld = map[inventory.ID][]string{configMap(9): link}
			mark(in, inventory.Leaving, 9, 10)
		}, 0, 2, nil},
		"kept anyhow": {"it is not released either", func(in *plan.Input) {
			in.Withheld, in.Pruning.Disabled = map[inventory.ID][]string{configMap(9): link}, true
		}, 1, 0, nil},
		"with a limit": {"what is withheld does not count, and the rest exceeds the limit", func(in *plan.Input) {
			in.Desired, in.Pruning.Limit = in.Desired[:2], &pruning.Limit{Most: 1}
			in.Withheld = map[inventory.ID][]string{configMap(9): link}
		}, 8, 0, []string{"7 of 10 objects would be deleted", "app/b.yaml"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := installed(10)
			keep(&in, 8)
			tc.change(&in)
			p := plan.Make(in)
			if p.Held.Len() != tc.held || p.Deletions() != tc.going {
				t.Fatalf("%s: held %v, %d are deleted", tc.reason, p.Held, p.Deletions())
			}
			if p.Held == nil {
				return
			}
			for _, id := range p.Held.Objects {
				if !p.Inventory.Has(id) || slices.Contains(pruned(p.Prune), id) {
					t.Errorf("%s is held, and leaves the inventory or is pruned", id)
				}
			}
			for _, part := range tc.text {
				if text := p.Held.String(); !strings.Contains(text, part) {
					t.Errorf("%s: %q lacks %q", tc.reason, text, part)
				}
			}
		})
	}
}

// TestKeepingDoesNotTakeBack: an object of the applied revision that the inventory does not list any more was released, and is not adopted
// again while a newer revision fails; one that is gone as well is created again.
func TestKeepingDoesNotTakeBack(t *testing.T) {
	for name, c := range map[string]struct {
		listed, exists bool
		want           int
	}{
		"listed":            {true, true, 1},
		"deleted by a user": {true, false, 1},
		"released":          {false, true, 0},
		"deleted":           {false, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			in := plan.Input{Owner: owner, Desired: []plan.Object{desired(one, "")}, Keeping: true}
			if c.listed {
				in.Previous = inventory.New("", confirmed(one))
			}
			if c.exists {
				in.Live = map[inventory.ID]ownership.Live{one: {UID: "1", Orphaned: true}}
			}
			got := plan.Make(in)
			if len(got.Violations) > 0 || got.Len() != c.want || got.Inventory.Has(one) != (c.want == 1) {
				t.Errorf("violations %v, %d objects planned, want %d; listed %v", got.Violations, got.Len(), c.want, got.Inventory.Has(one))
			}
		})
	}
}
