// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"crypto/sha256"
	"encoding/base64"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const (
	// maxStored is the size of a request that etcd accepts by default (--max-request-bytes), and so of an object.
	maxStored = 3 << 19
	// reserved is for what the rest of the object grows by while a plan is executed, and for edits by others.
	reserved = 128 << 10
	// leastLimit is a limit even beside an object that leaves no room: a small inventory may fit nevertheless.
	leastLimit = 16 << 10
)

// LimitBeside returns the limit of an inventory in an object of which the rest takes so many bytes as JSON.
func LimitBeside(rest int) Limit {
	return Limit(max(leastLimit, base64.StdEncoding.DecodedLen(max(0, maxStored-reserved-rest))))
}

// longestEntry is the maximum size of an entry without its names and version: the
// JSON field names, three hashes, a mark and flags. longestByte is the size of one byte of
// a name that JSON escapes.
const (
	longestEntry = 112
	longestByte  = 6
)

// LimitOf returns the limit of which a stored inventory takes as much as a plan may use; 0 if it lists its entries readably.
func LimitOf(stored *v1alpha1.Inventory) Limit {
	if stored == nil {
		return 0
	}
	size := base64.StdEncoding.DecodedLen(len(stored.Compressed))
	return Limit(size + size/slack)
}

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
