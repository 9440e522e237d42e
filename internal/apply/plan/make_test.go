// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
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

func ours() ownership.Live {
	return ownership.Live{UID: "uid", ResourceVersion: "7", Owner: owner, Fields: fields, Seen: seen}
}

// The action for a desired object, by its entry and its live state.
func TestDecideDesired(t *testing.T) {
	with := func(change func(*ownership.Live)) *ownership.Live {
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
	taken := func(l *ownership.Live) { l.Owner, l.Managers = other, []string{other.Manager()} }
	tests := map[string]struct {
		reason string
		entry  *inventory.Entry
		live   *ownership.Live
		want   plan.Verb // empty: refused
	}{
		"new":                        {"it does not exist and never did", nil, nil, plan.Create},
		"planned":                    {"an apply died before it came to it", planned, nil, plan.Create},
		"deleted":                    {"another client deleted it", entry(same), nil, plan.Repair},
		"as it was":                  {"nothing moved: no request", entry(same), with(func(*ownership.Live) {}), plan.Unchanged},
		"rendered again":             {"the bundle changed", entry(func(e *inventory.Entry) { e.Rendered = changed }), with(func(*ownership.Live) {}), plan.Update},
		"field taken":                {"our managed fields differ", entry(same), with(func(l *ownership.Live) { l.Fields = changed }), plan.Repair},
		"managed fields stripped":    {"our entry is gone", entry(same), with(func(l *ownership.Live) { l.Fields = inventory.Hash{} }), plan.Repair},
		"generation moved":           {"perhaps a value changed and our entry was written back", entry(same), with(func(l *ownership.Live) { l.Seen = changed }), plan.Settle},
		"untraceable":                {"the API server keeps no fields of it: no repair loop", entry(func(e *inventory.Entry) { e.Fields = inventory.Untraceable }), with(func(l *ownership.Live) { l.Fields = inventory.Hash{} }), plan.Unchanged},
		"untraceable, written":       {"what was seen of it is all there is", entry(func(e *inventory.Entry) { e.Fields = inventory.Untraceable }), with(func(l *ownership.Live) { l.Fields, l.Seen = inventory.Hash{}, changed }), plan.Settle},
		"killed before record":       {"our manager applied it, our labels are on it", planned, with(func(*ownership.Live) {}), plan.Update},
		"record lost":                {"the same with a lost status", nil, with(func(*ownership.Live) {}), plan.Update},
		"killed in an adoption":      {"our manager holds it and it has no owner's labels", nil, with(func(l *ownership.Live) { l.Owner = inventory.Owner{} }), plan.Update},
		"terminating":                {"it can be applied when it is gone", entry(same), with(func(l *ownership.Live) { l.Deleting = true }), plan.Wait},
		"orphaned":                   {"an earlier deployment left it behind", nil, with(func(l *ownership.Live) { l.Owner, l.Fields, l.Orphaned = inventory.Owner{}, inventory.Hash{}, true }), plan.Adopt},
		"orphaned, but taken":        {"another deployment adopted it already", nil, with(func(l *ownership.Live) { l.Orphaned = true; taken(l); l.Fields = inventory.Hash{} }), ""},
		"of another client":          {"it exists and is not ours", nil, with(func(l *ownership.Live) { l.Owner, l.Fields = inventory.Owner{}, inventory.Hash{} }), ""},
		"of another client, planned": {"it was created between plan and write", planned, with(func(l *ownership.Live) { l.Owner, l.Fields = inventory.Owner{}, inventory.Hash{} }), ""},
		"forged labels":              {"labels alone prove nothing", nil, with(func(l *ownership.Live) { l.Fields = inventory.Hash{} }), ""},
		"another deployment's":       {"two deployments claim it", nil, with(func(l *ownership.Live) { taken(l); l.Fields = inventory.Hash{} }), ""},
		"really taken over":          {"it was ours, and another deployment applied it since", entry(same), with(taken), ""},
		"label edited":               {"a changed owner label alone is drift", entry(same), with(func(l *ownership.Live) { l.Owner, l.Fields = other, changed }), plan.Repair},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := plan.Input{Owner: owner, Desired: []plan.Object{desired(one, "")}, Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{}}}
			if tc.entry != nil {
				in.Previous = inventory.New("target", *tc.entry)
			}
			if tc.live != nil {
				in.Live[one] = *tc.live
			}
			p := plan.Make(in)
			if tc.want == "" {
				if len(p.Violations) != 1 || p.Violations[0].Rule != violation.Collision || len(p.Stages) != 0 {
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

// The owner of an object that is refused, by the best evidence.
func TestT13CollisionNamesTheOwner(t *testing.T) {
	tests := map[string]struct {
		live ownership.Live
		want string
	}{
		"labels":          {ownership.Live{Owner: other, Tool: "Helm release x"}, "belongs to BundleDeployment shop/other"},
		"manager":         {ownership.Live{Managers: []string{"kubectl", "satchel/b/c"}, Tool: "Helm release x"}, "belongs to BundleDeployment b/c"},
		"tool":            {ownership.Live{Tool: "Helm release shop/web", Managers: []string{"helm"}}, "belongs to Helm release shop/web: adopt the whole release, without a restart, with kubectl satchel-migrate adopt web -n shop"},
		"owner reference": {ownership.Live{Controller: "ReplicaSet web-5d"}, "is controlled by ReplicaSet web-5d"},
		"forged":          {ownership.Live{Owner: owner, Managers: []string{"x"}}, "never applied it"},
		"field managers":  {ownership.Live{Managers: []string{"a", "b"}}, "was written by a, b"},
		"no evidence":     {ownership.Live{}, "was created by another client"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := plan.Make(plan.Input{Owner: owner, Desired: []plan.Object{desired(one, "")}, Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{one: tc.live}}})
			if len(p.Violations) != 1 || !strings.Contains(p.Violations[0].String(), tc.want) {
				t.Errorf("got %v, want %q", p.Violations, tc.want)
			}
		})
	}
}

// The action for an object that is not desired any more.
func TestDecideDeletion(t *testing.T) {
	crd := inventory.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.org"}
	namespace := inventory.ID{Kind: "Namespace", Name: "shop"}
	with := func(change func(*ownership.Live)) *ownership.Live {
		live := ours()
		change(&live)
		return &live
	}
	same := func(*ownership.Live) {}
	tests := map[string]struct {
		reason     string
		id         inventory.ID
		planned    bool // never confirmed
		live       *ownership.Live
		unreadable bool
		want       plan.How
	}{
		"ours":                 {"it goes", one, false, with(same), false, plan.Delete},
		"gone":                 {"nothing to do", one, false, nil, false, plan.Forget},
		"unreadable":           {"a failed read deletes nothing", one, false, nil, true, plan.Keep},
		"terminating":          {"it goes already", one, false, with(func(l *ownership.Live) { l.Deleting = true }), false, plan.Await},
		"CRD":                  {"the resources of its kind would go with it", crd, false, with(same), false, plan.Release},
		"namespace":            {"everything in it would go with it", namespace, false, with(same), false, plan.DeleteEmpty},
		"labels of others":     {"T11: it changed hands, or the inventory is forged", one, false, with(func(l *ownership.Live) { l.Owner = other }), false, plan.Forget},
		"no proof":             {"T11: neither labels nor fields are ours", one, false, with(func(l *ownership.Live) { l.Owner, l.Fields = inventory.Owner{}, inventory.Hash{} }), false, plan.Forget},
		"labels stripped":      {"our fields still prove it", one, false, with(func(l *ownership.Live) { l.Owner = inventory.Owner{} }), false, plan.Delete},
		"fields stripped":      {"our labels still prove what was applied once", one, false, with(func(l *ownership.Live) { l.Fields = inventory.Hash{} }), false, plan.Delete},
		"planned, applied":     {"F4: the apply died before it was recorded", one, true, with(same), false, plan.Delete},
		"planned, not by us":   {"another client created it, with our labels", one, true, with(func(l *ownership.Live) { l.Fields = inventory.Hash{} }), false, plan.Forget},
		"CRD of others":        {"a CRD is not stolen", crd, false, with(func(l *ownership.Live) { l.Owner = other }), false, plan.Forget},
		"namespace, not by us": {"nor a namespace", namespace, true, with(func(l *ownership.Live) { l.Owner, l.Fields = inventory.Owner{}, inventory.Hash{} }), false, plan.Forget},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			entry := confirmed(tc.id)
			if tc.planned {
				entry = inventory.Entry{ID: tc.id, Version: "v1"}
			}
			in := plan.Input{
				Owner: owner, Previous: inventory.New("target", entry),
				Desired:  []plan.Object{desired(inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: "new"}, "")},
				Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{}, Unreadable: map[inventory.ID]string{}},
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
				t.Error("it left the inventory before it was deleted or released")
			}
		})
	}
}

// The namespaces that do not exist are part of a plan: only cluster-wide permissions hold
// there.
func TestPlanKnowsWhatIsAbsent(t *testing.T) {
	namespace := func(name string) inventory.ID { return inventory.ID{Kind: "Namespace", Name: name} }
	in := plan.Input{
		Owner: owner,
		Desired: []plan.Object{
			desired(namespace("new"), ""), desired(namespace("empty"), ""), desired(namespace("there"), ""), desired(namespace("hidden"), ""),
			desired(inventory.ID{Kind: "ConfigMap", Namespace: "new", Name: "c"}, ""), desired(inventory.ID{Kind: "ConfigMap", Namespace: "gone", Name: "c"}, ""),
		},
		Observed: plan.Observed{
			Namespaces: map[string]plan.Presence{"new": plan.Absent, "gone": plan.Absent, "there": plan.Present, "hidden": plan.Unknown, "going": plan.Terminating},
			Live:       map[inventory.ID]ownership.Live{namespace("there"): ours()},
			Unreadable: map[inventory.ID]string{namespace("hidden"): "forbidden"},
		},
	}
	if diff := cmp.Diff([]string{"empty", "gone", "new"}, plan.Make(in).Absent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// annotated is the metadata of a live object of the owner.
func annotated(annotations map[string]string) metav1.Object {
	return &metav1.ObjectMeta{UID: "uid", ResourceVersion: "7", Labels: owner.Labels(), Annotations: annotations}
}
