// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"

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

// packedEntry is the most that an entry takes in the packed form beside its texts: two bytes of state, two lengths for each of
// five texts, three hashes, and its share of what compression adds at the worst.
const packedEntry = 2 + 10 + 24 + 1

// LimitOf returns the limit of which a stored inventory takes as much as a plan may use; 0 if it lists its entries readably.
func LimitOf(stored *v1alpha1.Inventory) Limit {
	if stored == nil {
		return 0
	}
	size := base64.StdEncoding.DecodedLen(len(stored.Compressed))
	return Limit(size + size/slack)
}

// CheckPlanned fails with a *TooLargeError when a planned inventory will not fit into the
// status at any time until the next plan: it lists the objects that are written, and those of
// the previous inventory that wait for their removal, which are given. Hashes of the objects
// hardly compress, and are known only after the write: the inventory is checked with all of
// them, so that no object is created that could not be recorded afterwards.
//
// A plan that begins to replace objects is accepted only if they may also be applied again
// before they are removed, as in a rollback.
func (l Limit) CheckPlanned(previous, planned Inventory, removed map[ID]bool) error {
	written := func(e Entry) bool { return !removed[e.ID] && !e.Recorded() }
	if !slices.ContainsFunc(planned.Entries, written) || planned.surelyFits(l.planned()) {
		return nil // it was stored before at its full size, or is small
	}
	worst := planned.changedBy(func(e Entry) Entry {
		if removed[e.ID] {
			return e
		}
		return e.worst()
	})
	if _, _, err := l.planned().compressReduced(worst, nil); err != nil || slices.ContainsFunc(previous.Entries, isLeaving) {
		return err
	}
	_, _, err := l.planned().compress(planned.changedBy(func(e Entry) Entry {
		if e.Confirmed() || removed[e.ID] || e.Mark == RunOnce {
			e.Mark = ""
			return e.worst()
		}
		return Entry{ID: e.ID, Version: e.Version, Rendered: e.worst().Rendered, Begun: true}
	}), nil)
	return err
}

// surelyFits tells whether the entries fit even without compression.
func (i Inventory) surelyFits(l Limit) bool {
	size := packedEntry // for what is not of an entry
	for _, entry := range i.Entries {
		size += packedEntry + len(entry.Group) + len(entry.Kind) + len(entry.Namespace) + len(entry.Version) + len(entry.Name)
	}
	return i.Len() <= MaxEntries && size <= l.bytes()
}

// changedBy returns the entries as change makes them.
func (i Inventory) changedBy(change func(Entry) Entry) []Entry {
	changed := make([]Entry, 0, i.Len())
	for _, entry := range i.Entries {
		changed = append(changed, change(entry))
	}
	return changed
}

// worst is the entry with all hashes. Missing ones are derived from its
// identity: they compress as badly as real ones, and the result is the same for the same plan.
func (e Entry) worst() Entry {
	if !e.Recorded() {
		e.Fields, e.Seen = Hash{}, Hash{}
	}
	for at, hash := range []*Hash{&e.Rendered, &e.Fields, &e.Seen} {
		if hash.IsZero() {
			sum := sha256.Sum256([]byte(e.encode() + string(rune('0'+at))))
			*hash = cut(sum[:])
		}
	}
	return e
}

func isLeaving(e Entry) bool { return e.Mark == Leaving }

// compressReduced is compress. If the entries are too large, those of objects that wait for their removal lose what only
// another apply of these objects would use: first what tells their drift, then what tells their content.
func (l Limit) compressReduced(entries []Entry, before []block) (compressed string, blocks []block, err error) {
	compressed, blocks, err = l.compress(entries, before)
	for _, reduce := range []func(Entry) Entry{Entry.withoutState, Entry.withoutContent} {
		large := (*TooLargeError)(nil)
		if !errors.As(err, &large) || !slices.ContainsFunc(entries, isLeaving) {
			break
		}
		less := slices.Clone(entries)
		for i := range less {
			if isLeaving(less[i]) {
				less[i] = reduce(less[i])
			}
		}
		compressed, blocks, err = l.compress(less, before)
	}
	return compressed, blocks, err
}

// withoutState is the entry without what tells whether the object has changed since it was written. It still tells that it was
// written, and by its UID which object that was. Planned again, the object looks changed, and is applied.
func (e Entry) withoutState() Entry {
	if e.Confirmed() {
		e.Fields = Unrecorded
	}
	clear(e.Seen[seenUID:])
	return e
}

// withoutContent is the entry without what tells its content either. That of a Job that completed stays, or the Job would run
// again. If another client changes a field of such an object, and the object is planned again, the field counts as the
// deployment's only if it is in what was applied or begun last.
func (e Entry) withoutContent() Entry {
	if e = e.withoutState(); !e.Done {
		e.Rendered = Hash{}
	}
	return e
}
