// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// renaming is a deployment in which a revision replaces objects by others, as the plans of the controller record that.
type renaming struct {
	t      testing.TB
	source *rand.Rand
	room   inventory.Limit
	// stored is what the status lists. Each step begins with it, as after a restart of the controller.
	stored inventory.Inventory
	// exists are the objects on the cluster.
	exists map[inventory.ID]bool
}

func (r *renaming) hash() (h inventory.Hash) {
	for i := range h {
		h[i] = byte(r.source.Uint32())
	}
	return h
}

// plan plans a revision of these objects, and stores the plan if it is accepted.
func (r *renaming) plan(wanted []inventory.ID) error {
	removed := map[inventory.ID]bool{}
	planned := map[inventory.ID]bool{}
	for _, id := range wanted {
		planned[id] = true
	}
	next := inventory.Inventory{Target: r.stored.Target}
	for _, entry := range r.stored.Entries {
		switch {
		case planned[entry.ID] && entry.Mark == inventory.Leaving:
			entry.Mark = ""
		case !planned[entry.ID]:
			removed[entry.ID] = true
			if r.exists[entry.ID] {
				entry.Mark = inventory.Leaving
			}
		}
		next.Entries = append(next.Entries, entry)
	}
	var begun, added []inventory.Entry
	for _, id := range wanted {
		entry, listed := next.Get(id)
		if !listed {
			added = append(added, inventory.Entry{ID: id, Version: "v1", Mark: inventory.Unproven})
		}
		if !entry.Recorded() {
			begun = append(begun, inventory.Entry{ID: id, Version: "v1", Mark: inventory.Unproven, Rendered: r.hash()})
		}
	}
	next = next.With(added...)
	if err := r.room.CheckPlanned(r.stored, next, removed); err != nil {
		return err
	}
	r.store(next.Begin(begun))
	return nil
}

// write applies some of the objects, and store records that; killed: only the cluster knows.
func (r *renaming) write(ids []inventory.ID, killed bool) {
	var entries []inventory.Entry
	for _, id := range ids {
		r.exists[id] = true
		entry, _ := r.stored.Get(id)
		if entry.Begun {
			entry.Fields, entry.Seen, entry.Begun = r.hash(), r.hash(), false
			entries = append(entries, entry)
		}
	}
	if !killed {
		r.store(r.stored.With(entries...))
	}
}

// store stores an inventory, and checks what the next process reads.
func (r *renaming) store(next inventory.Inventory) {
	r.t.Helper()
	encoded, err := r.room.Encode(next)
	if err != nil {
		r.t.Fatalf("what was accepted does not fit: %v", err)
	}
	read, err := inventory.Decode(encoded)
	if err != nil || read.Len() != next.Len() {
		r.t.Fatalf("%d objects were stored, %d are read: %v", next.Len(), read.Len(), err)
	}
	for i, got := range read.Entries {
		want := next.Entries[i]
		if got.Mark == inventory.Leaving && want.Recorded() && !got.Recorded() {
			if !got.Confirmed() || !got.Seen.SameObject(want.Seen) {
				r.t.Fatalf("%s was written, and that is lost", want.ID)
			}
			got.Fields, got.Seen = want.Fields, want.Seen
		}
		if got.Mark == inventory.Leaving && got.Rendered.IsZero() {
			got.Rendered = want.Rendered
		}
		if got != want {
			r.t.Fatalf("another entry is read (-stored +read):\n%s", cmp.Diff(want, got))
		}
	}
	r.stored = read
}

// prune removes what the revision of these objects does not contain.
func (r *renaming) prune(kept []inventory.ID) {
	wanted := map[inventory.ID]bool{}
	for _, id := range kept {
		wanted[id] = true
	}
	var gone []inventory.ID
	for _, entry := range r.stored.Entries {
		if !wanted[entry.ID] {
			gone = append(gone, entry.ID)
			delete(r.exists, entry.ID)
		}
	}
	r.store(r.stored.Without(gone...))
}

func mixedIDs(prefix string, n int) []inventory.ID {
	kinds := []inventory.ID{{Kind: "ConfigMap"}, {Kind: "Service"}, {Kind: "Secret"}, {Group: "apps", Kind: "Deployment"}, {Group: "networking.k8s.io", Kind: "NetworkPolicy"}}
	roles := []string{"api", "worker", "web", "cache", "cron"}
	ids := make([]inventory.ID, 0, n)
	for i := range n {
		id := kinds[i%len(kinds)]
		id.Namespace, id.Name = fmt.Sprintf("team-%02d", i/5%20), fmt.Sprintf("%s-%s-%d", prefix, roles[i/100%5], i/5)
		ids = append(ids, id)
	}
	return ids
}

func startRenaming(t testing.TB, seed uint64, room inventory.Limit, old []inventory.ID) *renaming {
	t.Helper()
	r := &renaming{t: t, source: rand.New(rand.NewPCG(seed, 5)), room: room, exists: map[inventory.ID]bool{}, stored: inventory.New("target")}
	if err := r.plan(old); err != nil {
		t.Fatal(err)
	}
	r.write(old, false)
	proven, _ := r.stored.Proven(nil)
	r.store(proven)
	return r
}

// All of 25,000 mixed objects are replaced by others. The inventory fits at every step: when half of them are applied, when the
// controller is killed before it recorded the rest, when all are applied, and when the former revision is applied again.
func TestS5AllObjectsAreRenamed(t *testing.T) {
	const n, deployment = 25_000, 10 << 10
	old, renamed := mixedIDs("v1", n), mixedIDs("v2", n)
	r := startRenaming(t, 1, inventory.LimitBeside(deployment), old)
	if err := r.plan(renamed); err != nil {
		t.Fatal(err)
	}
	r.write(renamed[:n/2], false)
	r.write(renamed, true)
	if err := r.plan(renamed); err != nil {
		t.Fatalf("after a restart: %v", err)
	}
	r.write(renamed, false)
	if err := r.plan(old); err != nil {
		t.Fatalf("the way back: %v", err)
	}
	r.write(old, false)
	r.prune(old)
	if r.stored.Len() != n || len(r.exists) != n {
		t.Errorf("%d objects are listed, and %d exist", r.stored.Len(), len(r.exists))
	}
	for _, entry := range r.stored.Entries {
		if !entry.Recorded() {
			t.Fatalf("the state of %s is not recorded", entry.ID)
		}
	}
}

// F43: a rename that is accepted fits at every later step, whatever is written, recorded, undone and repeated, and one that is
// refused is not far from the limit.
func TestF43RenamesFit(t *testing.T) {
	const limit = inventory.Limit(16 << 10)
	accepted, refused, states, contents := 0, 0, 0, 0
	for seed := range uint64(40) {
		source := rand.New(rand.NewPCG(seed, 44))
		common := mixedIDs("both", source.IntN(100))
		old := append(mixedIDs("old", 330+source.IntN(160)), common...)
		renamed := append(mixedIDs("new", 330+source.IntN(160)), common...)
		r := startRenaming(t, seed, limit, old)
		if err := r.plan(renamed); err != nil {
			if large := (*inventory.TooLargeError)(nil); !errors.As(err, &large) {
				t.Fatal(err)
			}
			refused++
			if n := len(old) + len(renamed); n < 700 {
				t.Errorf("seed %d: %d and %d objects are refused, %d of them are the same", seed, len(old), len(renamed), len(common))
			}
			continue
		}
		accepted++
		at := renamed
		for range 5 {
			r.write(at[:source.IntN(len(at)+1)], source.IntN(3) == 0)
			for _, entry := range r.stored.Entries {
				switch {
				case !entry.Confirmed() || entry.Recorded():
				case entry.Rendered.IsZero():
					contents++
				default:
					states++
				}
			}
			switch source.IntN(3) {
			case 0:
				at = old
			case 1:
				at = renamed
			}
			if err := r.plan(at); err != nil {
				t.Fatalf("seed %d: accepted, and then %v", seed, err)
			}
		}
		r.write(at, false)
		r.prune(at)
		if r.stored.Len() != len(at) || len(r.exists) != len(at) {
			t.Errorf("seed %d: %d objects are listed, and %d exist of %d", seed, r.stored.Len(), len(r.exists), len(at))
		}
	}
	t.Logf("%d accepted, %d refused, %d states and %d contents were not recorded", accepted, refused, states, contents)
	if accepted < 10 || refused < 10 || states == 0 || contents == 0 {
		t.Error("one of them is hardly tried")
	}
}

// What does not have to be reduced is not, and of a Job that completed the content stays.
func TestOnlyWhatLeavesIsReduced(t *testing.T) {
	r := &renaming{source: rand.New(rand.NewPCG(3, 3))}
	entry := func(name string, mark inventory.Mark, change func(*inventory.Entry)) inventory.Entry {
		e := inventory.Entry{
			ID: inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: name}, Version: "v1", Rendered: r.hash(), Fields: r.hash(), Seen: r.hash(), Mark: mark,
		}
		change(&e)
		return e
	}
	entries := []inventory.Entry{
		entry("begun", inventory.Leaving, func(e *inventory.Entry) { e.Begun = true }),
		entry("done", inventory.Leaving, func(e *inventory.Entry) { e.Done = true }),
		entry("planned", inventory.Leaving, func(e *inventory.Entry) { e.Begun, e.Fields, e.Seen = true, inventory.Hash{}, inventory.Hash{} }),
		entry("stays", inventory.Unproven, func(*inventory.Entry) {}),
		entry("untraceable", inventory.Leaving, func(e *inventory.Entry) { e.Fields = inventory.Untraceable }),
	}
	for i := range 400 {
		entries = append(entries, entry(fmt.Sprintf("z%03d", i), "", func(*inventory.Entry) {}))
	}
	all := inventory.New("target", entries...)
	stored := func(limit inventory.Limit) (read inventory.Inventory, size int) {
		t.Helper()
		encoded, err := limit.Encode(all)
		if err != nil {
			t.Fatal(err)
		}
		if read, err = inventory.Decode(encoded); err != nil {
			t.Fatal(err)
		}
		compressed, err := base64.StdEncoding.DecodeString(encoded.Compressed)
		if err != nil {
			t.Fatal(err)
		}
		return read, len(compressed)
	}
	read, size := stored(1 << 20)
	if diff := cmp.Diff(all, read); diff != "" {
		t.Errorf("it fits, and is reduced (-want +got):\n%s", diff)
	}
	for _, content := range []bool{true, false} {
		want := inventory.New("target", entries...)
		for i := range want.Entries {
			e := &want.Entries[i]
			if e.Mark != inventory.Leaving {
				continue
			}
			if e.Confirmed() {
				e.Fields = inventory.Unrecorded
			}
			clear(e.Seen[4:])
			if !content && !e.Done {
				e.Rendered = inventory.Hash{}
			}
		}
		read, size = stored(inventory.Limit(size - 1))
		if diff := cmp.Diff(want, read); diff != "" {
			t.Errorf("reduced (-want +got):\n%s", diff)
		}
	}
}
