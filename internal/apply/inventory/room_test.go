// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// F43: an inventory that is accepted when planned fits with any hashes, marks and flags of
// its objects, and one that is refused is not far from the limit.
func TestF43PlannedInventoriesFit(t *testing.T) {
	const limit = inventory.Limit(15 << 10)
	accepted, refused := 0, 0
	for seed := range uint64(60) {
		source := rand.New(rand.NewPCG(seed, 43))
		planned := random(source, 400+source.IntN(400))
		for i := range planned.Entries {
			entry := &planned.Entries[i]
			entry.Rendered, entry.Fields, entry.Seen = inventory.Hash{}, inventory.Hash{}, inventory.Hash{}
		}
		err := limit.CheckPlanned(inventory.Inventory{}, planned, nil)
		for i := range planned.Entries {
			entry := &planned.Entries[i]
			for _, hash := range []*inventory.Hash{&entry.Rendered, &entry.Fields, &entry.Seen} {
				for at := range hash {
					hash[at] = byte(source.Uint32())
				}
			}
			entry.Begun = source.IntN(3) == 0
			entry.Mark = []inventory.Mark{"", inventory.Unproven, inventory.RunOnce}[source.IntN(3)]
		}
		var large *inventory.TooLargeError
		_, written := limit.Encode(planned)
		switch {
		case err == nil && written == nil:
			accepted++
		case err == nil:
			t.Errorf("seed %d: accepted when planned, and then %v", seed, written)
		case !errors.As(err, &large):
			t.Errorf("seed %d: %v", seed, err)
		default:
			refused++
			if _, fits := (limit * 9 / 10).Encode(planned); fits == nil {
				t.Errorf("seed %d: refused, and takes less than nine tenths of the limit", seed)
			}
		}
	}
	if accepted < 10 || refused < 10 {
		t.Errorf("%d accepted, %d refused: one of them is hardly tried", accepted, refused)
	}
}

// F35: the same object is recognized by its UID, whatever was written to it.
func TestF35SameObject(t *testing.T) {
	seen := func(uid types.UID, generation int64, version string) inventory.Hash {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetUID(uid)
		o.SetGeneration(generation)
		o.SetResourceVersion(version)
		return inventory.HashSeen(o)
	}
	one := seen("a", 1, "1")
	for name, tc := range map[string]struct {
		other inventory.Hash
		same  bool
	}{
		"another generation": {seen("a", 2, "2"), true},
		"no generation":      {seen("a", 0, "3"), true},
		"another UID":        {seen("b", 1, "1"), false},
		"never seen":         {inventory.Hash{}, false},
	} {
		if one.SameObject(tc.other) != tc.same || tc.other.SameObject(one) != tc.same || one == tc.other {
			t.Errorf("%s: want %v", name, tc.same)
		}
	}
}

// F34: an entry with a begun write keeps the last known state of the object, and drops that a Job was done.
func TestF34Begin(t *testing.T) {
	id := inventory.ID{Kind: "ConfigMap", Namespace: "a", Name: "x"}
	known := inventory.Entry{ID: id, Version: "v1", Rendered: inventory.Hash{1}, Fields: inventory.Hash{2}, Seen: inventory.Hash{3}, Mark: inventory.Unproven, Done: true}
	planned := inventory.Entry{ID: id, Version: "v1", Rendered: inventory.Hash{9}}
	got, _ := inventory.New("t", known).Begin([]inventory.Entry{planned}).Get(id)
	want := known
	want.Rendered, want.Begun, want.Done = inventory.Hash{9}, true, false
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if completed, changed := inventory.New("t", got).Complete(map[inventory.ID]bool{id: true}); changed || completed.Entries[0].Done {
		t.Error("what is being written counts as completed")
	}
}
