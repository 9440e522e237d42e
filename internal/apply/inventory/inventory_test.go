// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

func ids(i inventory.Inventory) []inventory.ID {
	var list []inventory.ID
	for _, entry := range i.Entries {
		list = append(list, entry.ID)
	}
	return list
}

// The set operations, with random inventories.
func TestSetAlgebra(t *testing.T) {
	for seed := range uint64(80) {
		source := rand.New(rand.NewPCG(seed, 2))
		a, b := random(source, source.IntN(40)), random(source, source.IntN(40))
		union, onlyA, onlyB := a.Union(b), a.Minus(b), b.Minus(a)
		check := func(what string, want, got []inventory.ID) {
			t.Helper()
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d: %s (-want +got):\n%s", seed, what, diff)
			}
		}
		check("union is symmetric in its objects", ids(union), ids(b.Union(a)))
		check("union with itself", ids(a), ids(a.Union(a)))
		check("minus itself", nil, ids(a.Minus(a)))
		check("minus nothing", ids(a), ids(a.Minus(inventory.Inventory{})))
		check("a = union without what only b has", ids(a), ids(union.Without(ids(onlyB)...)))
		check("union = a and what only b has", ids(union), ids(a.With(onlyB.Entries...)))
		if union.Len() != a.Len()+onlyB.Len() || union.Len() != b.Len()+onlyA.Len() {
			t.Fatalf("seed %d: sizes do not add up", seed)
		}
		if !slices.IsSortedFunc(union.Entries, func(a, b inventory.Entry) int { return a.Compare(b.ID) }) {
			t.Fatalf("seed %d: not sorted", seed)
		}
		for _, entry := range a.Entries {
			if got, found := union.Get(entry.ID); !found || got != entry {
				t.Fatalf("seed %d: the union forgot what was seen of %s", seed, entry.ID)
			}
		}
		for _, entry := range onlyA.Entries {
			if b.Has(entry.ID) || !a.Has(entry.ID) {
				t.Fatalf("seed %d: %s is not only in a", seed, entry.ID)
			}
		}
	}
}

func TestWithReplacesEntries(t *testing.T) {
	id := inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: "one"}
	before := inventory.New("target", inventory.Entry{ID: id, Version: "v1"})
	after := before.With(inventory.Entry{ID: id, Version: "v2"})
	if entry, _ := after.Get(id); entry.Version != "v2" || after.Len() != 1 || after.Target != "target" {
		t.Errorf("got %+v", after)
	}
	if entry, _ := before.Get(id); entry.Version != "v1" {
		t.Error("the receiver changed")
	}
}

// Near finds what Get finds, whatever index it begins with.
func TestNearIsGet(t *testing.T) {
	for seed := range uint64(20) {
		source := rand.New(rand.NewPCG(seed, 3))
		some, sought := random(source, source.IntN(20)), random(source, 20)
		for _, id := range append(ids(some), ids(sought)...) {
			want, listed := some.Get(id)
			for probably := range some.Len() + 2 {
				got, at, found := some.Near(id, probably)
				if found != listed || got != want || found && some.Entries[at] != want {
					t.Fatalf("seed %d: %s is found %v at %d, begun with %d, and want %v", seed, id, found, at, probably, listed)
				}
			}
		}
	}
}

func TestIDForPeople(t *testing.T) {
	tests := map[string]inventory.ID{
		"Deployment.apps shop/web": {Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"},
		"ConfigMap shop/one":       {Kind: "ConfigMap", Namespace: "shop", Name: "one"},
		"Namespace shop":           {Kind: "Namespace", Name: "shop"},
	}
	for want, id := range tests {
		if id.String() != want {
			t.Errorf("got %q, want %q", id, want)
		}
	}
}

func TestOwner(t *testing.T) {
	owner := inventory.Owner{Namespace: "shop", Name: "web"}
	if owner.Manager() != "satchel/shop/web" || inventory.OwnerOfManager(owner.Manager()) != owner {
		t.Errorf("manager %q", owner.Manager())
	}
	if inventory.OwnerOf(owner.Labels()) != owner {
		t.Errorf("labels %v", owner.Labels())
	}
	long := inventory.Owner{Namespace: strings.Repeat("n", 63), Name: strings.Repeat("a", 63)}
	other := inventory.Owner{Namespace: long.Namespace, Name: strings.Repeat("a", 62) + "b"}
	if len(long.Manager()) > 128 || long.Manager() == other.Manager() {
		t.Errorf("managers %q and %q: want them different and of at most 128 characters", long.Manager(), other.Manager())
	}
	if !inventory.OwnerOfManager("kubectl").IsZero() || !inventory.OwnerOfManager(long.Manager()).IsZero() {
		t.Error("an owner is read from a name that tells none")
	}
}

func object(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return u
}

func TestHasher(t *testing.T) {
	hash := func(text, key string) inventory.Hash {
		h, err := inventory.NewHasher([]byte(key)).Rendered(object(text))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	base := hash(`{"kind":"A","spec":{"a":1,"b":2}}`, "")
	if base != hash(`{"spec":{"b":2,"a":1},"kind":"A"}`, "") {
		t.Error("the order of fields matters")
	}
	if base == hash(`{"kind":"A","spec":{"a":1,"b":3}}`, "") {
		t.Error("a value does not matter")
	}
	if base == hash(`{"kind":"A","spec":{"a":1,"b":2}}`, "key") {
		t.Error("the key does not matter")
	}
}

func TestHashFields(t *testing.T) {
	entry := func(manager, subresource, fields string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, Subresource: subresource, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
		}
	}
	const ours = "satchel/shop/web"
	one := entry(ours, "", `{"f:data":{"f:a":{},"f:b":{}}}`, metav1.ManagedFieldsOperationApply)
	hash := func(entries ...metav1.ManagedFieldsEntry) inventory.Hash { return inventory.HashFields(entries, ours) }
	base := hash(one)
	if base.IsZero() {
		t.Fatal("our entry is not found")
	}
	spaced := entry(ours, "", `{ "f:data": {"f:b":{}, "f:a":{}} }`, metav1.ManagedFieldsOperationApply)
	if base != hash(spaced) {
		t.Error("order and white space matter")
	}
	if base != hash(entry("kubectl", "", `{"f:x":{}}`, metav1.ManagedFieldsOperationUpdate), one) {
		t.Error("entries of others matter")
	}
	for reason, other := range map[string]metav1.ManagedFieldsEntry{
		"another manager":  entry("satchel/shop/other", "", `{}`, metav1.ManagedFieldsOperationApply),
		"an update":        entry(ours, "", `{}`, metav1.ManagedFieldsOperationUpdate),
		"a subresource":    entry(ours, "status", `{}`, metav1.ManagedFieldsOperationApply),
		"no fields at all": {Manager: ours, Operation: metav1.ManagedFieldsOperationApply},
	} {
		if !hash(other).IsZero() {
			t.Errorf("%s is taken for our entry", reason)
		}
	}
	if base == hash(entry(ours, "", `{"f:data":{"f:a":{}}}`, metav1.ManagedFieldsOperationApply)) {
		t.Error("a lost field does not matter")
	}
}

func TestHashSeen(t *testing.T) {
	seen := func(uid types.UID, generation int64, version string) inventory.Hash {
		return inventory.HashSeen(&metav1.ObjectMeta{UID: uid, Generation: generation, ResourceVersion: version})
	}
	if seen("a", 1, "10") != seen("a", 1, "11") {
		t.Error("a status write is taken for a change")
	}
	if seen("a", 1, "10") == seen("a", 2, "10") {
		t.Error("a new generation is not seen")
	}
	if seen("a", 0, "10") == seen("a", 0, "11") {
		t.Error("a write is not seen on a kind without generations")
	}
	if seen("a", 1, "10") == seen("b", 1, "10") {
		t.Error("another object of the same name is not seen")
	}
}
