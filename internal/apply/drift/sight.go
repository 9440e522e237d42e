// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"crypto/sha256"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// presence of an object, as far as its watch has reported.
type presence uint8

const (
	unknown presence = iota
	present
	leaving // it is being deleted
	absent
)

// sight is the last known state of an object.
type sight struct {
	presence     presence
	version      uint64         // resource version; 0 when the server's cannot be compared
	fields, seen inventory.Hash // as in an inventory
	writers      writers
}

// writers digests which manager wrote what and when: the object itself, and those of its
// subresources that change the hashes of a sight. That is the scale where there are
// generations, which a status does not change, and any of them where there are none.
type writers struct {
	itself, parts inventory.Hash
	generation    int64 // 0 for kinds without
}

// partsOnly tells that exactly one write happened and that it was of such a subresource,
// not of the object itself. Both sights have to be consecutive: a write that
// only changes the order of a list leaves no trace in the managed fields. Times are in
// seconds: two writes in the same second may look like one.
func (w writers) partsOnly(later writers) bool {
	return !w.itself.IsZero() && w.itself == later.itself && w.parts != later.parts && (w.generation == 0 || later.generation == w.generation+1)
}

// state is the part of a sight that matters for drift.
type state struct {
	presence     presence
	fields, seen inventory.Hash
}

func (s sight) state() state { return state{s.presence, s.fields, s.seen} }

func sightOf(object metav1.Object, manager string) sight {
	entries := object.GetManagedFields()
	counted := object.GetGeneration() != 0
	s := sight{
		presence: present,
		version:  number(object.GetResourceVersion()),
		fields:   inventory.HashFields(entries, manager),
		seen:     inventory.HashSeen(object),
		writers: writers{
			generation: object.GetGeneration(),
			itself:     hashEntries(entries, func(e *metav1.ManagedFieldsEntry) bool { return e.Subresource == "" }),
			parts: hashEntries(entries, func(e *metav1.ManagedFieldsEntry) bool {
				return e.Subresource == "scale" || e.Subresource != "" && !counted
			}),
		},
	}
	if object.GetDeletionTimestamp() != nil {
		s.presence = leaving
	}
	return s
}

// number parses a resource version, which the API server increments.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// hashEntries digests which manager wrote what and when.
func hashEntries(entries []metav1.ManagedFieldsEntry, counts func(*metav1.ManagedFieldsEntry) bool) inventory.Hash {
	sum := sha256.New()
	for i := range entries {
		e := &entries[i]
		if !counts(e) {
			continue
		}
		sum.Write([]byte(e.Manager + "\x00" + string(e.Operation) + "\x00" + e.Subresource + "\x00"))
		if e.Time != nil {
			sum.Write([]byte(e.Time.UTC().Format(time.RFC3339)))
		}
		if e.FieldsV1 != nil {
			sum.Write(e.FieldsV1.GetRawBytes())
		}
	}
	return inventory.Hash(sum.Sum(nil)[:len(inventory.Hash{})])
}

// drift is how the last known state of an object differs from what was applied.
type drift uint8

const (
	// none: it is as it was applied, or its state is not known yet.
	none drift = iota
	// deleted: it does not exist, or does not carry our labels.
	deleted
	// changed: fields of ours were taken or removed.
	changed
	// moved: it was written and our fields look the same; see plan.Settle.
	moved
)

// want is the state of an object when it was last applied or compared.
type want struct {
	fields, seen inventory.Hash
	// since is the resource version that the hashes are of: earlier sights
	// are ignored.
	since uint64
	// done: it is a Job that ran to its end, and may be deleted.
	done bool
}

// compare returns the drift of an object. The first line that holds decides.
//
//	nothing seen since                   none
//	it does not exist, and need not      none     see inventory.Entry.Done
//	it does not exist                    deleted
//	it is being deleted                  none     it is deleted in a moment
//	our entry is gone, or another one    changed
//	UID or generation moved              moved
//	else                                 none
func (w want) compare(s sight) drift {
	switch {
	case s.presence == unknown, s.version != 0 && s.version < w.since:
		return none
	case s.presence == absent && w.done:
		return none
	case s.presence == absent:
		return deleted
	case s.presence == leaving:
		return none
	case s.fields.IsZero() && w.fields != inventory.Untraceable, !s.fields.IsZero() && s.fields != w.fields:
		return changed
	case s.seen != w.seen:
		return moved
	}
	return none
}
