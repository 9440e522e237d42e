// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"crypto/sha256"
)

// longestEntry is the maximum size of an entry without its names and version: the
// JSON field names, three hashes, a mark and flags. longestByte is the size of one byte of
// a name that JSON escapes.
const (
	longestEntry = 112
	longestByte  = 6
)

// CheckPlanned fails with a *TooLargeError when a planned inventory will not fit into the
// status once all of its objects are written. Hashes of the objects hardly compress, and
// are known only after the write: the inventory is checked with all of them, so that
// no object is created that could not be recorded afterwards.
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

// grows tells whether an object of the inventory was never written: otherwise the inventory
// was stored before at its full size.
func (i Inventory) grows() bool {
	for _, entry := range i.Entries {
		if !entry.Confirmed() {
			return true
		}
	}
	return false
}

// surelyFits tells whether the entries fit even without compression.
func (i Inventory) surelyFits(l Limit) bool {
	size := 0
	for _, entry := range i.Entries {
		size += longestEntry + len(entry.Group) + len(entry.Kind) + len(entry.Namespace) + len(entry.Version) + longestByte*len(entry.Name)
	}
	return i.Len() <= MaxEntries && size <= l.bytes()
}

// worst is the entry with all hashes. Missing ones are derived from its
// identity: they compress as badly as real ones, and the result is the same for the same plan.
func (e Entry) worst() Entry {
	for at, hash := range []*Hash{&e.Rendered, &e.Fields, &e.Seen} {
		if hash.IsZero() {
			sum := sha256.Sum256([]byte(e.encode() + string(rune('0'+at))))
			*hash = cut(sum[:])
		}
	}
	return e
}
