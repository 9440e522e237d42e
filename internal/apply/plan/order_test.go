// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

var kindsInOrder = []struct {
	id         inventory.ID
	definition string
}{
	{inventory.ID{Kind: "Namespace", Name: "shop"}, ""},
	{inventory.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.org"}, ""},
	{inventory.ID{Kind: "ServiceAccount", Namespace: "shop", Name: "web"}, ""},
	{inventory.ID{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding", Namespace: "shop", Name: "web"}, ""},
	{inventory.ID{Kind: "Service", Namespace: "shop", Name: "web"}, ""},
	{inventory.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, ""},
	{inventory.ID{Group: "example.org", Kind: "Widget", Namespace: "shop", Name: "web"}, "widgets.example.org"},
	{inventory.ID{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration", Name: "web"}, ""},
}

// Stages are in order, whatever the order of the objects; the plan of shuffled
// objects is the same plan.
func TestStagesInOrder(t *testing.T) {
	var first plan.Plan
	for seed := range uint64(50) {
		var objects []plan.Object
		for _, kind := range kindsInOrder {
			objects = append(objects, desired(kind.id, kind.definition))
		}
		source := rand.New(rand.NewPCG(seed, 3))
		source.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		p := plan.Make(plan.Input{Owner: owner, Desired: objects})
		if seed == 0 {
			first = p
		}
		if diff := cmp.Diff(first, p, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d: another plan:\n%s", seed, diff)
		}
	}
	for i, action := range slices.Collect(first.Actions()) {
		if action.ID != kindsInOrder[i].id {
			t.Errorf("%d: got %s, want %s", i, action.ID, kindsInOrder[i].id)
		}
	}
	if len(first.Stages) != len(kindsInOrder) {
		t.Errorf("%d stages", len(first.Stages))
	}
}

// The order of deletion starts with custom resources and ends with the namespace.
func TestDeletionsInOrder(t *testing.T) {
	in := plan.Input{Owner: owner, Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{}, Kinds: map[schema.GroupKind]plan.Kind{}}}
	var entries []inventory.Entry
	for _, kind := range kindsInOrder {
		entries = append(entries, confirmed(kind.id))
		in.Live[kind.id] = ours()
		in.Kinds[kind.id.GroupKind()] = desired(kind.id, "").Kind
	}
	in.Previous = inventory.New("target", entries...)
	var got []string
	for _, stage := range plan.Removal(in) {
		for _, deletion := range stage.Deletions {
			got = append(got, deletion.ID.Kind)
		}
	}
	want := []string{"Widget", "ValidatingWebhookConfiguration", "CustomResourceDefinition", "Deployment", "Service", "RoleBinding", "ServiceAccount", "Namespace"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Higher phases are deleted first, each awaited by the lower ones, except webhooks, CRDs and namespaces,
// which block other objects. RBAC is deleted late in any case.
func TestDeletionsByPhase(t *testing.T) {
	in := plan.Input{Owner: owner, Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{}, Kinds: map[schema.GroupKind]plan.Kind{}}}
	var entries []inventory.Entry
	for _, kind := range kindsInOrder {
		for _, phase := range []int{-5, 0, 10} {
			id := kind.id
			id.Name = fmt.Sprintf("%s-%d", id.Name, phase)
			live := ours()
			live.Phase = phase
			entries = append(entries, confirmed(id))
			in.Live[id] = live
			in.Kinds[id.GroupKind()] = desired(id, kind.definition).Kind
		}
	}
	gone := inventory.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "gone"}
	in.Previous = inventory.New("target", append(entries, confirmed(gone))...)
	var got []string
	for _, stage := range plan.Removal(in) {
		text := stage.Name + ":"
		for _, deletion := range stage.Deletions {
			text += " " + deletion.Name
		}
		if stage.Awaited {
			text += ", awaited"
		}
		got = append(got, text)
	}
	want := []string{
		"custom resources of phase 10: web-10, awaited", "custom resources of phase 0: web-0, awaited", "custom resources: web--5, awaited",
		"admission: web--5 web-0 web-10",
		"definitions: widgets.example.org--5 widgets.example.org-0 widgets.example.org-10, awaited",
		"workloads of phase 10: web-10, awaited", "resources of phase 10: web-10, awaited",
		"workloads of phase 0: gone web-0, awaited", "resources of phase 0: web-0, awaited",
		"workloads: web--5", "resources: web--5",
		"bindings of phase 10: web-10, awaited", "bindings of phase 0: web-0, awaited", "bindings: web--5",
		"foundations of phase 10: web-10, awaited", "foundations of phase 0: web-0, awaited", "foundations: web--5",
		"namespaces: shop--5 shop-0 shop-10",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An empty bundle is a mistake unless the deployment is deleted.
func TestEmptyRenderPrunesNothing(t *testing.T) {
	in := plan.Input{Owner: owner, Previous: inventory.New("target", confirmed(one)), Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{one: ours()}}}
	p := plan.Make(in)
	if len(p.Violations) != 1 || p.Violations[0].Rule != violation.EmptyRender || len(p.Prune) != 0 || p.Inventory.Len() != 1 {
		t.Errorf("got %+v", p)
	}
}

// Missing namespaces that objects need and the bundle does not contain are named, with the remedy.
func TestNamespaces(t *testing.T) {
	namespace := inventory.ID{Kind: "Namespace", Name: "shop"}
	tests := map[string]struct {
		presence plan.Presence
		bundle   bool
		create   string
		want     []violation.Rule
		actions  int
	}{
		"present":               {presence: plan.Present, actions: 1},
		"unknown":               {presence: plan.Unknown, actions: 1},
		"absent":                {presence: plan.Absent, want: []violation.Rule{violation.NamespaceMissing}, actions: 1},
		"absent, in the bundle": {presence: plan.Absent, bundle: true, actions: 2},
		"absent, created":       {presence: plan.Absent, create: "shop", actions: 2},
		"present, created":      {presence: plan.Present, create: "shop", actions: 1},
		"both":                  {presence: plan.Absent, bundle: true, create: "shop", actions: 2},
		"another is created":    {presence: plan.Absent, create: "else", want: []violation.Rule{violation.NamespaceMissing}, actions: 1},
		"terminating":           {presence: plan.Terminating, create: "shop", want: []violation.Rule{violation.NamespaceMissing}, actions: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := plan.Input{
				Owner: owner, Desired: []plan.Object{desired(one, "")}, CreateNamespace: tc.create,
				Observed: plan.Observed{Namespaces: map[string]plan.Presence{"shop": tc.presence, "else": plan.Present}},
			}
			if tc.bundle {
				in.Desired = append(in.Desired, desired(namespace, ""))
			}
			p := plan.Make(in)
			var rules []violation.Rule
			for _, violation := range p.Violations {
				rules = append(rules, violation.Rule)
			}
			if !slices.Equal(rules, tc.want) || p.Len() != tc.actions {
				t.Errorf("violations %v, %d actions", p.Violations, p.Len())
			}
			if tc.create != "" && !tc.bundle && p.Inventory.Has(namespace) {
				t.Error("a created namespace is in the inventory and would be deleted")
			}
		})
	}
}

// From any state, a plan is complete: each desired
// object has one action or violation, or is unreadable, each other entry has one deletion, and the
// inventory to store lists them all.
func TestPlanIsComplete(t *testing.T) {
	for seed := range uint64(300) {
		source := rand.New(rand.NewPCG(seed, 4))
		in := randomInput(source)
		p := plan.Make(in)
		if len(in.Desired) == 0 {
			continue
		}
		handled := map[inventory.ID]int{}
		for action := range p.Actions() {
			handled[action.ID]++
		}
		for _, violation := range p.Violations {
			handled[violation.Object]++
		}
		for _, object := range p.Unreadable {
			handled[object.ID]++
		}
		if said := slices.ContainsFunc(p.Violations, func(v violation.Violation) bool { return v.Rule == violation.PermissionMissing }); said != (len(p.Unreadable) > 0) {
			t.Fatalf("seed %d: %d objects cannot be looked at, and the violations are %v", seed, len(p.Unreadable), p.Violations)
		}
		for _, stage := range p.Prune {
			for _, deletion := range stage.Deletions {
				handled[deletion.ID]++
				if slices.ContainsFunc(in.Desired, func(o plan.Object) bool { return o.ID == deletion.ID }) {
					t.Fatalf("seed %d: %s is desired and pruned", seed, deletion.ID)
				}
			}
		}
		for _, object := range in.Desired {
			if handled[object.ID] != 1 || !p.Inventory.Has(object.ID) {
				t.Fatalf("seed %d: %s is handled %d times", seed, object.ID, handled[object.ID])
			}
		}
		for _, entry := range in.Previous.Entries {
			got, found := p.Inventory.Get(entry.ID)
			if got.Mark = ""; handled[entry.ID] != 1 || !found || got != entry {
				t.Fatalf("seed %d: %s is handled %d times, or what was seen of it is lost", seed, entry.ID, handled[entry.ID])
			}
		}
	}
}

func randomInput(source *rand.Rand) plan.Input {
	in := plan.Input{Owner: owner, Observed: plan.Observed{
		Live:       map[inventory.ID]ownership.Live{},
		Unreadable: map[inventory.ID]string{},
		Kinds:      map[schema.GroupKind]plan.Kind{},
	}}
	hash := func() inventory.Hash { return inventory.Hash{byte(source.IntN(3))} }
	var entries []inventory.Entry
	for _, kind := range kindsInOrder {
		in.Kinds[kind.id.GroupKind()] = desired(kind.id, "").Kind
		if source.IntN(2) == 0 {
			in.Desired = append(in.Desired, desired(kind.id, kind.definition))
		}
		if source.IntN(2) == 0 {
			entries = append(entries, inventory.Entry{ID: kind.id, Version: "v1", Rendered: hash(), Fields: hash(), Seen: hash()})
		}
		switch source.IntN(4) {
		case 0:
			in.Unreadable[kind.id] = "forbidden"
		case 1, 2:
			in.Live[kind.id] = ownership.Live{
				Fields: hash(), Seen: hash(), Orphaned: source.IntN(4) == 0, Deleting: source.IntN(4) == 0,
				Owner: []inventory.Owner{{}, owner, other}[source.IntN(3)], Managers: []string{"kubectl", other.Manager()}[:source.IntN(3)],
			}
		}
	}
	in.Previous = inventory.New("target", entries...)
	return in
}
