// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
)

// Entry is one object and its last known state. Fields and Seen are zero while
// the object is only planned. Of an object that waits for its removal, Rendered and the part
// of Seen that is not of the UID may be zero, and Fields be Unrecorded: see Limit.compressReduced.
type Entry struct {
	ID
	Version  string // of the API group, as last applied
	Rendered Hash   // of the desired object, as written last or, while Begun, as planned
	Fields   Hash   // of our managed fields
	Seen     Hash   // of UID and generation: see HashSeen
	Mark     Mark   // how its deletion counts towards the limit
	// Begun: a write of the content with the hash Rendered was planned, or, if that is zero, a deletion before a revision is
	// applied, and it is not known whether it happened.
	Begun bool
	// Done: it is a Job that completed with this content, and does not run
	// again when it is deleted.
	Done bool
}

// Confirmed tells that the object was written at least once for the owner.
func (e Entry) Confirmed() bool { return !e.Fields.IsZero() }

// Recorded tells that the state is known in which the object was left. It is not while the object was never
// written, and may not be while it waits for its removal: see Unrecorded.
func (e Entry) Recorded() bool { return e.Confirmed() && e.Fields != Unrecorded }

// Inventory is a set of entries of one target cluster, sorted by identity. The
// zero value is empty. Its methods never change the receiver.
type Inventory struct {
	Target  string // UID of kube-system
	Entries []Entry
}

// New sorts entries into an inventory; of two with one identity the later one wins.
func New(target string, entries ...Entry) Inventory {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b Entry) int { return a.Compare(b.ID) })
	kept := sorted[:0]
	for i, entry := range sorted {
		if i+1 < len(sorted) && sorted[i+1].ID == entry.ID {
			continue
		}
		kept = append(kept, entry)
	}
	return Inventory{Target: target, Entries: slices.Clip(kept)}
}

// Len is the number of objects.
func (i Inventory) Len() int { return len(i.Entries) }

// Get finds the entry of an object.
func (i Inventory) Get(id ID) (Entry, bool) {
	at, found := i.index(id)
	if !found {
		return Entry{}, false
	}
	return i.Entries[at], true
}

func (i Inventory) index(id ID) (at int, found bool) {
	return slices.BinarySearchFunc(i.Entries, id, func(e Entry, id ID) int { return e.Compare(id) })
}

// Near is Get for objects that come mostly in the order of the inventory: it looks at an index first. It also returns the index of
// the entry.
func (i Inventory) Near(id ID, probably int) (entry Entry, at int, found bool) {
	if probably < len(i.Entries) && i.Entries[probably].ID == id {
		return i.Entries[probably], probably, true
	}
	if at, found = i.index(id); !found {
		return Entry{}, at, false
	}
	return i.Entries[at], at, true
}

// Has tells whether the object is listed.
func (i Inventory) Has(id ID) bool {
	_, found := i.Get(id)
	return found
}

// Union holds the entries of both; where both list an object, the receiver's
// entry stays, for it has been seen and the other is only planned.
func (i Inventory) Union(planned Inventory) Inventory {
	return i.With(planned.Minus(i).Entries...)
}

// Minus holds the entries that the other inventory does not list.
func (i Inventory) Minus(other Inventory) Inventory {
	rest := other.Entries
	return i.filter(func(e Entry) bool { // both are sorted
		for len(rest) > 0 && rest[0].Compare(e.ID) < 0 {
			rest = rest[1:]
		}
		return len(rest) == 0 || rest[0].ID != e.ID
	})
}

// With replaces or adds entries.
func (i Inventory) With(entries ...Entry) Inventory {
	if len(entries) == 0 {
		return i
	}
	changed := New(i.Target, entries...).Entries
	merged := make([]Entry, 0, i.Len()+len(changed))
	rest := i.Entries
	for _, entry := range changed {
		at, found := slices.BinarySearchFunc(rest, entry.ID, func(e Entry, id ID) int { return e.Compare(id) })
		merged = append(append(merged, rest[:at]...), entry)
		if found {
			at++
		}
		rest = rest[at:]
	}
	return Inventory{Target: i.Target, Entries: slices.Clip(append(merged, rest...))}
}

// Begin records, before the first write, what is about to be written: the entries of
// these objects get the content hashes of the given ones. The last known state of the objects stays.
func (i Inventory) Begin(planned []Entry) Inventory {
	begun := make([]Entry, 0, len(planned))
	for _, entry := range planned {
		if known, found := i.Get(entry.ID); found {
			known.Rendered = entry.Rendered
			entry = known
		}
		entry.Begun, entry.Done = true, false
		begun = append(begun, entry)
	}
	return i.With(begun...)
}

// Delete records that a deletion was begun of those of the objects that are listed, before a newer revision is applied: see Deleted.
func (i Inventory) Delete(ids ...ID) Inventory {
	var deleted []Entry
	for _, id := range ids {
		if entry, listed := i.Get(id); listed {
			entry.Rendered = Hash{}
			entry.Begun = true
			entry.Done = false
			deleted = append(deleted, entry)
		}
	}
	return i.With(deleted...)
}

// Deleted tells whether a newer revision than the applied one has deleted an object of the latter, or has begun to.
func (i Inventory) Deleted(id ID) bool {
	entry, listed := i.Get(id)
	return !listed || entry.Begun && entry.Rendered.IsZero()
}

// Complete records that Jobs completed. It tells whether that changes any entry.
func (i Inventory) Complete(jobs map[ID]bool) (completed Inventory, changed bool) {
	var done []Entry
	if len(jobs) == 0 {
		return i, false
	}
	for _, entry := range i.Entries {
		if jobs[entry.ID] && !entry.Done && entry.Confirmed() && !entry.Begun {
			entry.Done = true
			done = append(done, entry)
		}
	}
	if len(done) == 0 {
		return i, false
	}
	return i.With(done...), true
}

// Without drops the entries of the given objects.
func (i Inventory) Without(ids ...ID) Inventory {
	gone := make(map[ID]struct{}, len(ids))
	for _, id := range ids {
		gone[id] = struct{}{}
	}
	return i.filter(func(e Entry) bool { _, dropped := gone[e.ID]; return !dropped })
}

func (i Inventory) filter(keep func(Entry) bool) Inventory {
	kept := Inventory{Target: i.Target}
	for _, entry := range i.Entries {
		if keep(entry) {
			kept.Entries = append(kept.Entries, entry)
		}
	}
	return kept
}

// Unfinished tells that the writes of a plan were begun and are not known to be complete.
func (i Inventory) Unfinished() bool {
	return slices.ContainsFunc(i.Entries, func(e Entry) bool { return e.Begun || !e.Confirmed() })
}
