// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

var (
	owner = inventory.Owner{Namespace: "shop", Name: "web"}
	other = inventory.Owner{Namespace: "shop", Name: "other"}

	rendered = inventory.Hash{1}
	fields   = inventory.Hash{2}
	seen     = inventory.Hash{3}
	changed  = inventory.Hash{9}

	one = inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: "one"}
)

// desired makes an object of a kind; group/version and plural do not matter to a plan.
func desired(id inventory.ID, definition string) plan.Object {
	return plan.Object{
		ID: id, Rendered: rendered, Desired: &unstructured.Unstructured{Object: map[string]any{}},
		Kind: plan.Kind{
			Resource:   schema.GroupVersionResource{Group: id.Group, Version: "v1", Resource: strings.ToLower(id.Kind) + "s"},
			Namespaced: id.Namespace != "", Definition: definition,
		},
	}
}

func confirmed(id inventory.ID) inventory.Entry {
	return inventory.Entry{ID: id, Version: "v1", Rendered: rendered, Fields: fields, Seen: seen}
}

func ours() plan.Live {
	return plan.Live{UID: "uid", ResourceVersion: "7", Owner: owner, Fields: fields, Seen: seen}
}

// What happens to a desired object, by what is known and seen of it.
func TestDecideDesired(t *testing.T) {
	with := func(change func(*plan.Live)) *plan.Live {
		live := ours()
		change(&live)
		return &live
	}
	entry := func(change func(*inventory.Entry)) *inventory.Entry {
		e := confirmed(one)
		change(&e)
		return &e
	}
	same := func(*inventory.Entry) {}
	planned := &inventory.Entry{ID: one, Version: "v1"}
	taken := func(l *plan.Live) { l.Owner, l.Managers = other, []string{other.Manager()} }
	tests := map[string]struct {
		reason string
		entry  *inventory.Entry
		live   *plan.Live
		want   plan.Verb // empty: refused
	}{
		"new":                     {"it does not exist and never did", nil, nil, plan.Create},
		"planned":                 {"an apply died before it came to it", planned, nil, plan.Create},
		"deleted":                 {"somebody deleted it", entry(same), nil, plan.Repair},
		"as it was":               {"nothing moved: no request", entry(same), with(func(*plan.Live) {}), plan.Unchanged},
		"rendered anew":           {"the bundle changed", entry(func(e *inventory.Entry) { e.Rendered = changed }), with(func(*plan.Live) {}), plan.Update},
		"field taken":             {"our managed fields differ", entry(same), with(func(l *plan.Live) { l.Fields = changed }), plan.Repair},
		"managed fields stripped": {"our entry is gone", entry(same), with(func(l *plan.Live) { l.Fields = inventory.Hash{} }), plan.Repair},
		"generation moved":        {"perhaps a value changed and our entry was written back", entry(same), with(func(l *plan.Live) { l.Seen = changed }), plan.Settle},
		"untraceable":             {"the API server keeps no fields of it: no repair loop", entry(func(e *inventory.Entry) { e.Fields = inventory.Untraceable }), with(func(l *plan.Live) { l.Fields = inventory.Hash{} }), plan.Unchanged},
		"untraceable, written":    {"what was seen of it is all there is", entry(func(e *inventory.Entry) { e.Fields = inventory.Untraceable }), with(func(l *plan.Live) { l.Fields, l.Seen = inventory.Hash{}, changed }), plan.Settle},
		"killed before record":    {"our manager applied it, our labels are on it", planned, with(func(*plan.Live) {}), plan.Update},
		"record lost":             {"the same with a lost status", nil, with(func(*plan.Live) {}), plan.Update},
		"killed in a take-up":     {"our manager holds it and nobody's labels are on it", nil, with(func(l *plan.Live) { l.Owner = inventory.Owner{} }), plan.Update},
		"terminating":             {"it can be applied when it is gone", entry(same), with(func(l *plan.Live) { l.Deleting = true }), plan.Wait},
		"orphaned":                {"an earlier deployment left it behind", nil, with(func(l *plan.Live) { l.Owner, l.Fields, l.Orphaned = inventory.Owner{}, inventory.Hash{}, true }), plan.Update},
		"orphaned, but taken":     {"another deployment took it up already", nil, with(func(l *plan.Live) { l.Orphaned = true; taken(l); l.Fields = inventory.Hash{} }), ""},
		"somebody's":              {"it exists and is not ours", nil, with(func(l *plan.Live) { l.Owner, l.Fields = inventory.Owner{}, inventory.Hash{} }), ""},
		"somebody's, planned":     {"it was created between plan and write", planned, with(func(l *plan.Live) { l.Owner, l.Fields = inventory.Owner{}, inventory.Hash{} }), ""},
		"forged labels":           {"labels alone prove nothing", nil, with(func(l *plan.Live) { l.Fields = inventory.Hash{} }), ""},
		"another deployment's":    {"two deployments claim it", nil, with(func(l *plan.Live) { taken(l); l.Fields = inventory.Hash{} }), ""},
		"taken over in earnest":   {"it was ours, and another deployment applied it since", entry(same), with(taken), ""},
		"label edited":            {"a changed owner label alone is drift", entry(same), with(func(l *plan.Live) { l.Owner, l.Fields = other, changed }), plan.Repair},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := plan.Input{Owner: owner, Desired: []plan.Object{desired(one, "")}, Live: map[inventory.ID]plan.Live{}}
			if tc.entry != nil {
				in.Previous = inventory.New("target", *tc.entry)
			}
			if tc.live != nil {
				in.Live[one] = *tc.live
			}
			p := plan.Make(in)
			if tc.want == "" {
				if len(p.Violations) != 1 || p.Violations[0].Rule != plan.Collision || len(p.Stages) != 0 {
					t.Fatalf("%s: got %s, violations %v", tc.reason, p.Summary(), p.Violations)
				}
			} else if p.Count(tc.want) != 1 || len(p.Violations) != 0 {
				t.Fatalf("%s: got %s, violations %v, want %s", tc.reason, p.Summary(), p.Violations, tc.want)
			}
			if !p.Inventory.Has(one) || len(p.Prune) != 0 {
				t.Errorf("the planned object is not in the inventory, or is pruned")
			}
		})
	}
}

// Who owns an object that is refused, from the best evidence.
func TestT13CollisionNamesTheOwner(t *testing.T) {
	tests := map[string]struct {
		live plan.Live
		want string
	}{
		"labels":           {plan.Live{Owner: other, Tool: "Helm release x"}, "belongs to BundleDeployment shop/other"},
		"manager":          {plan.Live{Managers: []string{"kubectl", "satchel/b/c"}, Tool: "Helm release x"}, "belongs to BundleDeployment b/c"},
		"tool":             {plan.Live{Tool: "Helm release shop/web", Managers: []string{"helm"}}, "belongs to Helm release shop/web"},
		"owner reference":  {plan.Live{Controller: "ReplicaSet web-5d"}, "is controlled by ReplicaSet web-5d"},
		"forged":           {plan.Live{Owner: owner, Managers: []string{"x"}}, "never applied it"},
		"field managers":   {plan.Live{Managers: []string{"a", "b"}}, "was written by a, b"},
		"nobody to be had": {plan.Live{}, "was created by somebody else"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := plan.Make(plan.Input{Owner: owner, Desired: []plan.Object{desired(one, "")}, Live: map[inventory.ID]plan.Live{one: tc.live}})
			if len(p.Violations) != 1 || !strings.Contains(p.Violations[0].Message, tc.want) {
				t.Errorf("got %v, want %q", p.Violations, tc.want)
			}
		})
	}
}

// What happens to an object that is not desired any more.
func TestDecideDeletion(t *testing.T) {
	crd := inventory.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.org"}
	namespace := inventory.ID{Kind: "Namespace", Name: "shop"}
	with := func(change func(*plan.Live)) *plan.Live {
		live := ours()
		change(&live)
		return &live
	}
	same := func(*plan.Live) {}
	tests := map[string]struct {
		reason     string
		id         inventory.ID
		planned    bool // never confirmed
		live       *plan.Live
		unreadable bool
		want       plan.How
	}{
		"ours":                  {"it goes", one, false, with(same), false, plan.Delete},
		"gone":                  {"nothing to do", one, false, nil, false, plan.Forget},
		"unreadable":            {"a failed read deletes nothing", one, false, nil, true, plan.Keep},
		"terminating":           {"it goes already", one, false, with(func(l *plan.Live) { l.Deleting = true }), false, plan.Await},
		"CRD":                   {"the resources of its kind would go with it", crd, false, with(same), false, plan.Release},
		"namespace":             {"everything in it would go with it", namespace, false, with(same), false, plan.DeleteEmpty},
		"labels of others":      {"T11: it changed hands, or the inventory is forged", one, false, with(func(l *plan.Live) { l.Owner = other }), false, plan.Forget},
		"no proof":              {"T11: neither labels nor fields are ours", one, false, with(func(l *plan.Live) { l.Owner, l.Fields = inventory.Owner{}, inventory.Hash{} }), false, plan.Forget},
		"labels stripped":       {"our fields still prove it", one, false, with(func(l *plan.Live) { l.Owner = inventory.Owner{} }), false, plan.Delete},
		"fields stripped":       {"our labels still prove what was applied once", one, false, with(func(l *plan.Live) { l.Fields = inventory.Hash{} }), false, plan.Delete},
		"planned, applied":      {"F4: the apply died before it was recorded", one, true, with(same), false, plan.Delete},
		"planned, not by us":    {"somebody created it, with our labels", one, true, with(func(l *plan.Live) { l.Fields = inventory.Hash{} }), false, plan.Forget},
		"CRD of others":         {"a CRD is not stolen", crd, false, with(func(l *plan.Live) { l.Owner = other }), false, plan.Forget},
		"namespace of somebody": {"nor a namespace", namespace, true, with(func(l *plan.Live) { l.Owner, l.Fields = inventory.Owner{}, inventory.Hash{} }), false, plan.Forget},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			entry := confirmed(tc.id)
			if tc.planned {
				entry = inventory.Entry{ID: tc.id, Version: "v1"}
			}
			in := plan.Input{
				Owner: owner, Previous: inventory.New("target", entry),
				Desired: []plan.Object{desired(inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: "new"}, "")},
				Live:    map[inventory.ID]plan.Live{}, Unreadable: map[inventory.ID]string{},
			}
			if tc.live != nil {
				in.Live[tc.id] = *tc.live
			}
			if tc.unreadable {
				in.Unreadable[tc.id] = "forbidden"
			}
			p := plan.Make(in)
			if len(p.Prune) != 1 || p.Prune[0].Deletions[0].How != tc.want {
				t.Fatalf("%s: got %+v, want %s", tc.reason, p.Prune, tc.want)
			}
			if diff := cmp.Diff(p.Prune, plan.Removal(in)); diff != "" {
				t.Errorf("a removal decides otherwise:\n%s", diff)
			}
			if !p.Inventory.Has(tc.id) {
				t.Error("it left the inventory before it was let go")
			}
		})
	}
}

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
	for i, action := range first.Actions() {
		if action.ID != kindsInOrder[i].id {
			t.Errorf("%d: got %s, want %s", i, action.ID, kindsInOrder[i].id)
		}
	}
	if len(first.Stages) != len(kindsInOrder) {
		t.Errorf("%d stages", len(first.Stages))
	}
}

// Deleting goes from custom resources to the namespace.
func TestDeletionsInOrder(t *testing.T) {
	in := plan.Input{Owner: owner, Live: map[inventory.ID]plan.Live{}, Kinds: map[schema.GroupKind]plan.Kind{}}
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
	want := []string{"Widget", "ValidatingWebhookConfiguration", "Deployment", "Service", "RoleBinding", "ServiceAccount", "CustomResourceDefinition", "Namespace"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An empty bundle is a mistake until the deployment is deleted.
func TestEmptyRenderPrunesNothing(t *testing.T) {
	in := plan.Input{Owner: owner, Previous: inventory.New("target", confirmed(one)), Live: map[inventory.ID]plan.Live{one: ours()}}
	p := plan.Make(in)
	if len(p.Violations) != 1 || p.Violations[0].Rule != plan.EmptyRender || len(p.Prune) != 0 || p.Inventory.Len() != 1 {
		t.Errorf("got %+v", p)
	}
}

// Namespaces that objects need and nobody brings are named, with the way out.
func TestNamespaces(t *testing.T) {
	namespace := inventory.ID{Kind: "Namespace", Name: "shop"}
	tests := map[string]struct {
		presence plan.Presence
		bundle   bool
		create   string
		want     []plan.Rule
		actions  int
	}{
		"present":               {presence: plan.Present, actions: 1},
		"unknown":               {presence: plan.Unknown, actions: 1},
		"absent":                {presence: plan.Absent, want: []plan.Rule{plan.NamespaceMissing}, actions: 1},
		"absent, in the bundle": {presence: plan.Absent, bundle: true, actions: 2},
		"absent, created":       {presence: plan.Absent, create: "shop", actions: 2},
		"present, created":      {presence: plan.Present, create: "shop", actions: 1},
		"both":                  {presence: plan.Absent, bundle: true, create: "shop", actions: 2},
		"another is created":    {presence: plan.Absent, create: "else", want: []plan.Rule{plan.NamespaceMissing}, actions: 1},
		"terminating":           {presence: plan.Terminating, create: "shop", want: []plan.Rule{plan.NamespaceMissing}, actions: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := plan.Input{
				Owner: owner, Desired: []plan.Object{desired(one, "")}, CreateNamespace: tc.create,
				Namespaces: map[string]plan.Presence{"shop": tc.presence, "else": plan.Present},
			}
			if tc.bundle {
				in.Desired = append(in.Desired, desired(namespace, ""))
			}
			p := plan.Make(in)
			var rules []plan.Rule
			for _, violation := range p.Violations {
				rules = append(rules, violation.Rule)
			}
			if !slices.Equal(rules, tc.want) || len(p.Actions()) != tc.actions {
				t.Errorf("violations %v, %d actions", p.Violations, len(p.Actions()))
			}
			if tc.create != "" && !tc.bundle && p.Inventory.Has(namespace) {
				t.Error("a created namespace is in the inventory and would be deleted")
			}
		})
	}
}

// From any state, what a plan does and what is left alone add up: each desired
// object has one action or violation, each other entry one deletion, and the
// inventory to store knows them all.
func TestPlanIsComplete(t *testing.T) {
	for seed := range uint64(300) {
		source := rand.New(rand.NewPCG(seed, 4))
		in := randomInput(source)
		p := plan.Make(in)
		if len(in.Desired) == 0 {
			continue
		}
		handled := map[inventory.ID]int{}
		for _, action := range p.Actions() {
			handled[action.ID]++
		}
		for _, violation := range p.Violations {
			handled[violation.Object]++
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
			if got, found := p.Inventory.Get(entry.ID); handled[entry.ID] != 1 || !found || got != entry {
				t.Fatalf("seed %d: %s is handled %d times, or what was seen of it is lost", seed, entry.ID, handled[entry.ID])
			}
		}
	}
}

func randomInput(source *rand.Rand) plan.Input {
	in := plan.Input{Owner: owner, Live: map[inventory.ID]plan.Live{}, Unreadable: map[inventory.ID]string{}, Kinds: map[schema.GroupKind]plan.Kind{}}
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
			in.Live[kind.id] = plan.Live{
				Fields: hash(), Seen: hash(), Orphaned: source.IntN(4) == 0, Deleting: source.IntN(4) == 0,
				Owner: []inventory.Owner{{}, owner, other}[source.IntN(3)], Managers: []string{"kubectl", other.Manager()}[:source.IntN(3)],
			}
		}
	}
	in.Previous = inventory.New("target", entries...)
	return in
}
