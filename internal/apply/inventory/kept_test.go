// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// written is an inventory of n objects after the apply with a number.
func written(n, apply int) inventory.Inventory {
	entries := make([]inventory.Entry, 0, n)
	for i := range n {
		entries = append(entries, writtenEntry(i, apply))
	}
	return inventory.New("target", entries...)
}

func writtenEntry(i, apply int) inventory.Entry {
	number := byte(i)
	return inventory.Entry{
		ID:      inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("c%05d", i)},
		Version: "v1", Rendered: inventory.Hash{1, number}, Fields: inventory.Hash{2, number}, Seen: inventory.Hash{3, number, byte(apply)},
	}
}

// What a Kept encodes is the same as without it, after any changes, and decodes to the same.
func TestKeptEncodesTheSame(t *testing.T) {
	source := rand.New(rand.NewPCG(7, 7))
	kept, now := &inventory.Kept{}, written(3000, 0)
	for round := range 20 {
		switch round % 4 {
		case 0, 1:
			for range 1 + source.IntN(5) {
				now = now.With(writtenEntry(source.IntN(now.Len()), round))
			}
		case 2:
			now = now.Without(now.Entries[source.IntN(now.Len())].ID)
		case 3:
			now = now.With(writtenEntry(3000+round, round))
		}
		encoded, err := kept.Encode(0, now)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(mustEncode(t, now), encoded); diff != "" {
			t.Fatalf("round %d (-without +with what was kept):\n%s", round, diff)
		}
		if got, err := inventory.Decode(encoded); err != nil || !cmp.Equal(now, got) {
			t.Fatalf("round %d: it decodes to another inventory: %v", round, err)
		}
	}
}

// What is not stored for want of room is kept in memory, and only the next process misses it.
func TestKeptHasWhatIsNotStored(t *testing.T) {
	const limit = inventory.Limit(16 << 10)
	r := &renaming{source: rand.New(rand.NewPCG(1, 1))}
	now := written(800, 0)
	for i := range now.Entries {
		entry := &now.Entries[i]
		entry.Rendered, entry.Fields, entry.Seen = r.hash(), r.hash(), r.hash()
		if i%2 == 0 {
			entry.Mark = inventory.Leaving
		}
	}
	kept := &inventory.Kept{}
	encoded, err := kept.Encode(limit, now)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := kept.Decode(encoded); err != nil || !cmp.Equal(now, got.Inventory()) {
		t.Errorf("it is not kept: %v", err)
	}
	again, err := (&inventory.Kept{}).Decode(encoded)
	if err != nil || cmp.Equal(now, again.Inventory()) {
		t.Errorf("all of it is stored: %v", err)
	}
	if stored, err := limit.Encode(again.Inventory()); err != nil || !cmp.Equal(encoded, stored) {
		t.Errorf("the next process stores something else: %v", err)
	}
}

// One change of a large inventory costs a fraction of encoding all of it, and decoding what is kept costs nothing.
func TestKeptCostsWhatChanged(t *testing.T) {
	now := written(10_000, 0)
	full := testing.AllocsPerRun(1, func() { mustEncode(t, now) })
	kept, apply := &inventory.Kept{}, 0
	encoded, err := kept.Encode(0, now)
	if err != nil {
		t.Fatal(err)
	}
	one := testing.AllocsPerRun(3, func() {
		apply++
		if encoded, err = kept.Encode(0, now.With(writtenEntry(5000, apply))); err != nil {
			t.Fatal(err)
		}
	})
	again := testing.AllocsPerRun(3, func() {
		if got, err := kept.Decode(encoded); err != nil || got.Len() != now.Len() {
			t.Fatal(got.Len(), err)
		}
	})
	t.Logf("allocations: all %.0f, one changed %.0f, decoded again %.0f", full, one, again)
	if one > full/10 {
		t.Errorf("one changed entry of 10,000 costs %.0f allocations, all of them %.0f", one, full)
	}
	if again > 1 {
		t.Errorf("decoding what is kept costs %.0f allocations, want at most 1", again)
	}
}

// Later states of objects are kept until another inventory is encoded, or stored by another client.
func TestKeptDefers(t *testing.T) {
	at := time.Unix(1000, 0)
	stored := written(400, 0)
	encoded := mustEncode(t, stored)
	begun := writtenEntry(7, 1)
	begun.Begun = true
	other := writtenEntry(7, 1)
	other.Rendered = inventory.Hash{9}
	some := func(entries ...inventory.Entry) []inventory.Entry { return entries }
	tests := map[string]struct {
		reason  string
		encoded *v1alpha1.Inventory
		later   []inventory.Entry
		want    bool
	}{
		"repaired":        {"only the state after the write changed", encoded, some(writtenEntry(7, 1)), true},
		"several":         {"only the states after the writes changed", encoded, some(writtenEntry(399, 1), writtenEntry(0, 1)), true},
		"begun":           {"what may have been written has to be stored", encoded, some(writtenEntry(8, 1), begun), false},
		"another content": {"what was written has to be stored", encoded, some(other), false},
		"added":           {"an object that is not stored would be orphaned by a crash", encoded, some(writtenEntry(400, 1)), false},
		"not the kept":    {"another client stored it", mustEncode(t, written(400, 2)), some(writtenEntry(7, 1)), false},
		"small":           {"it is stored at once", mustEncode(t, written(3, 0)), some(writtenEntry(1, 1)), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			kept := &inventory.Kept{}
			current, err := kept.Decode(encoded)
			if err != nil {
				t.Fatal(err)
			}
			changed, deferred := kept.Defer(tc.encoded, current, tc.later, at)
			if deferred != tc.want {
				t.Fatalf("%s: deferred is %t, want %t", tc.reason, deferred, tc.want)
			}
			want := stored
			if tc.want {
				want = stored.With(tc.later...)
			}
			if deferred && !cmp.Equal(want, changed.Inventory()) {
				t.Error("it returns another inventory than wanted")
			}
			if got, err := kept.Decode(encoded); err != nil || !cmp.Equal(want, got.Inventory()) {
				t.Errorf("it decodes to another inventory than wanted: %v", err)
			}
			if _, since, deferred := kept.Deferred(); since.Equal(at) != tc.want || deferred != tc.want {
				t.Errorf("deferred is %t, since %s", deferred, since)
			}
			if !cmp.Equal(stored, current.Inventory()) {
				t.Error("the stored inventory was changed in place")
			}
			foreign := written(400, 5)
			if got, err := kept.Decode(mustEncode(t, foreign)); err != nil || !cmp.Equal(foreign, got.Inventory()) {
				t.Errorf("what another client stored is not read: %v", err)
			}
			if _, _, deferred := kept.Deferred(); deferred {
				t.Error("it is still deferred although another client stored another inventory")
			}
		})
	}
}

// Later states add up, whatever is stored between them, and cost no copy of the inventory. What was returned before stays as it
// was.
func TestKeptAddsUp(t *testing.T) {
	kept, at := &inventory.Kept{}, time.Unix(1000, 0)
	want := written(2000, 0)
	encoded, err := kept.Encode(0, want)
	if err != nil {
		t.Fatal(err)
	}
	type state struct {
		returned inventory.Current
		want     inventory.Inventory
	}
	var before []state
	for round := 1; round <= 30; round++ {
		current, err := kept.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		before = append(before, state{current, want})
		later := writtenEntry(round*97%2000, round)
		changed, deferred := kept.Defer(encoded, current, []inventory.Entry{later}, at)
		if want = want.With(later); !deferred || !cmp.Equal(want, changed.Inventory()) {
			t.Fatalf("round %d: deferred is %t, or the inventory another one", round, deferred)
		}
		if got, listed := changed.Get(later.ID); !listed || got != later {
			t.Errorf("round %d: the later state is not found", round)
		}
		before = append(before, state{changed, want})
		if round%7 == 0 {
			if encoded, err = kept.Encode(0, changed.Inventory()); err != nil || !cmp.Equal(mustEncode(t, want), encoded) {
				t.Fatalf("round %d: another inventory is encoded: %v", round, err)
			}
		}
	}
	for i, state := range before {
		if !cmp.Equal(state.want, state.returned.Inventory()) {
			t.Errorf("the inventory that was returned as number %d has changed since", i)
		}
	}
	if _, deferred := kept.Defer(encoded, inventory.CurrentOf(want), []inventory.Entry{writtenEntry(1, 99)}, at); deferred {
		t.Error("an inventory is deferred that is not based on the one that is kept")
	}
	const runs = 100
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	for range runs {
		current, err := kept.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		kept.Defer(encoded, current, []inventory.Entry{writtenEntry(1, 98)}, at)
	}
	runtime.ReadMemStats(&end)
	if bytes := (end.TotalAlloc - start.TotalAlloc) / runs; bytes > 10_000 {
		t.Errorf("to defer one entry of 2,000 allocates %d bytes", bytes)
	}
}

// The number of entries that are kept is bounded, and those of the deployments used last stay.
func TestRecentIsBounded(t *testing.T) {
	recent := &inventory.Recent{}
	encoded := mustEncode(t, written(20_000, 0))
	for i := range 8 {
		if _, err := recent.Of(fmt.Sprint(i)).Decode(encoded); err != nil {
			t.Fatal(err)
		}
	}
	keeps := func(uid string) bool {
		kept := recent.Of(uid)
		_, deferred := kept.Defer(encoded, kept.Latest(), []inventory.Entry{writtenEntry(1, 1)}, time.Unix(1, 0))
		return deferred
	}
	if !keeps("7") || !keeps("6") {
		t.Error("the deployments used last are not kept")
	}
	if keeps("0") {
		t.Error("more than 100,000 entries are kept")
	}
	recent.Forget("7")
	if keeps("7") {
		t.Error("a forgotten deployment is still kept")
	}
}
