// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Kept is the large inventory of one deployment as it was decoded or encoded last, so that the next reconcile does not decode
// it again, and encodes what changed. It has the state of all objects, also what is not stored for want of room, so that only the
// next process misses that. What another client stored is decoded as usual. A nil Kept keeps nothing. It is not safe for
// concurrent use; what it returns never changes.
type Kept struct {
	compressed string
	// current is the inventory with later states of its objects, which are not stored yet, since a time; zero if all are.
	current Current
	since   time.Time
	blocks  []block
	size    atomic.Int64
}

// Decode is the function Decode, but returns the deferred states too if the inventory on which they are based is given.
func (k *Kept) Decode(encoded *v1alpha1.Inventory) (Current, error) {
	if !k.holds(encoded) {
		listed, err := Decode(encoded)
		if err == nil {
			k.keep(encoded, listed, nil)
		}
		return CurrentOf(listed), err
	}
	k.compressed = encoded.Compressed // which the cache of objects shares
	return k.current.In(encoded.Target), nil
}

// Encode is Limit.Encode.
func (k *Kept) Encode(l Limit, i Inventory) (*v1alpha1.Inventory, error) {
	if k == nil {
		return l.Encode(i)
	}
	encoded, blocks, err := l.encode(i, k.blocks)
	if err == nil {
		k.keep(encoded, i, blocks)
	}
	return encoded, err
}

// Defer keeps later states of objects of the current inventory, to be stored not now but with the next inventory, and returns the
// inventory with them. It returns false, and keeps nothing, if more changed than what another write of the same content changes, or
// encoded is not the inventory that is kept, or current not what it decodes to. If the deferred states are lost, the objects look
// changed, and one more write of the same content settles that.
func (k *Kept) Defer(encoded *v1alpha1.Inventory, current Current, later []Entry, now time.Time) (changed Current, deferred bool) {
	if !k.holds(encoded) || !k.current.is(current) {
		return Current{}, false
	}
	for _, entry := range later {
		if before, listed := current.Get(entry.ID); !listed || !sameContent(before, entry) {
			return Current{}, false
		}
	}
	if k.since.IsZero() {
		k.since = now
	}
	k.current = current.with(later)
	return k.current, true
}

// Deferred returns the inventory with states that are not stored yet, and since when; false if there are none.
func (k *Kept) Deferred() (current Current, since time.Time, deferred bool) {
	if k == nil || k.since.IsZero() {
		return Current{}, time.Time{}, false
	}
	return k.current, k.since, true
}

// sameContent tells whether two entries differ at most in what an object looks like after a write.
func sameContent(a, b Entry) bool {
	a.Fields, a.Seen = b.Fields, b.Seen
	return a == b && b.Confirmed() && !b.Begun
}

// holds tells whether an inventory is the one that is kept.
func (k *Kept) holds(encoded *v1alpha1.Inventory) bool {
	return k != nil && encoded != nil && encoded.Compressed != "" && len(encoded.Entries) == 0 &&
		encoded.Compressed == k.compressed && int(encoded.Count) == k.current.Len()
}

// keep replaces what is kept. Small inventories are decoded faster than they are worth.
func (k *Kept) keep(encoded *v1alpha1.Inventory, listed Inventory, blocks []block) {
	if k == nil {
		return
	}
	k.compressed, k.blocks = "", nil
	k.current, k.since = Current{}, time.Time{}
	if encoded != nil && encoded.Compressed != "" {
		k.compressed, k.blocks = encoded.Compressed, blocks
		k.current = CurrentOf(listed)
	}
	k.size.Store(int64(k.current.Len()))
}

const (
	// mostKept is how many entries are kept in all, of some 400 bytes each.
	mostKept = 100_000
	// mostRecent is of how many deployments they are at most.
	mostRecent = 1000
)

// Recent holds the large inventories of the deployments that were reconciled last. The zero value is ready for use.
type Recent struct {
	mu sync.Mutex
	by []recent // the last one used is at the end
}

type recent struct {
	uid  string
	kept *Kept
}

// Of returns what is kept of a deployment. Only one reconcile of it may use that at a time.
func (r *Recent) Of(uid string) *Kept {
	r.mu.Lock()
	defer r.mu.Unlock()
	used := recent{uid: uid, kept: &Kept{}}
	if at := r.index(uid); at >= 0 {
		used = r.by[at]
		r.by = slices.Delete(r.by, at, at+1)
	}
	r.by = append(r.by, used)
	entries := int64(0)
	for at := len(r.by) - 1; at >= 0; at-- {
		entries += r.by[at].kept.size.Load()
		if at < len(r.by)-1 && entries > mostKept || len(r.by)-at > mostRecent {
			r.by = slices.Delete(r.by, 0, at+1)
			break
		}
	}
	return used.kept
}

// Forget drops what is kept of a deployment.
func (r *Recent) Forget(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.index(uid); at >= 0 {
		r.by = slices.Delete(r.by, at, at+1)
	}
}

func (r *Recent) index(uid string) int {
	return slices.IndexFunc(r.by, func(other recent) bool { return other.uid == uid })
}
