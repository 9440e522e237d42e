// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"crypto/sha256"
)

// longestEntry is more than what an entry takes beside its names and version: the
// names of its fields, three hashes, a mark and flags. longestByte is what one byte of
// a name takes when JSON escapes it.
const (
	longestEntry = 112
	longestByte  = 6
)

// CheckPlanned fails with a *TooLargeError when a planned inventory will not fit into the
// status once every object of it is written. Hashes of the objects hardly compress, and
// are known only after the write: the inventory is judged with all of them, so that
// nothing is created that could not be recorded afterwards.
func (l Limit) CheckPlanned(i Inventory) error {
	if !i.grows() || i.surelyFits(l.planned()) {
		return nil
	}
	worst := Inventory{Target: i.Target, Entries: make([]Entry, 0, i.Len())}
	for _, entry := range i.Entries {
		worst.Entries = append(worst.Entries, entry.worst())
	}
	_, err := l.planned().Encode(worst)
	return err
}

// grows tells whether something of the inventory was never written: else all of it was
// stored before as it will be.
func (i Inventory) grows() bool {
	for _, entry := range i.Entries {
		if !entry.Confirmed() {
			return true
		}
	}
	return false
}

// surelyFits tells whether the entries fit even if nothing of them can be compressed.
func (i Inventory) surelyFits(l Limit) bool {
	size := 0
	for _, entry := range i.Entries {
		size += longestEntry + len(entry.Group) + len(entry.Kind) + len(entry.Namespace) + len(entry.Version) + longestByte*len(entry.Name)
	}
	return i.Len() <= MaxEntries && size <= l.bytes()
}

// worst is the entry with all hashes. Those that are not known yet are made of its
// identity: they compress as badly as real ones, and the same plan is always judged alike.
func (e Entry) worst() Entry {
	for at, hash := range []*Hash{&e.Rendered, &e.Fields, &e.Seen} {
		if hash.IsZero() {
			sum := sha256.Sum256([]byte(e.encode() + string(rune('0'+at))))
			*hash = cut(sum[:])
		}
	}
	return e
}
