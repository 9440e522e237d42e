// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Room shares the memory for decoded objects, in values (fields, list items, scalars). Bundles of up to free values need no
// room, since there are at most as many of them as are reconciled at once: so small bundles never wait for large ones.
// A namespace gets half of the room; a single bundle may use more, up to all of it. Waiting objects hold no worker: they
// are woken in the order of their arrival, those of the namespaces that hold least first.
type Room struct {
	total, free int64
	wake        func(types.NamespacedName)

	mu      sync.Mutex
	used    int64
	by      map[string]int64               // of namespaces
	held    map[types.NamespacedName]int64 // taken, or promised
	waiting []waiter
}

type waiter struct {
	key    types.NamespacedName
	weight int64
}

// NewRoom returns a room for total values; objects of up to free values need none.
func NewRoom(total, free int64, wake func(types.NamespacedName)) *Room {
	return &Room{total: total, free: free, wake: wake, by: map[string]int64{}, held: map[types.NamespacedName]int64{}}
}

// Take reserves room for an object, replacing what it holds or was promised. Without room the object waits, and is
// woken when there is room, which is kept for it until Leave.
func (r *Room) Take(key types.NamespacedName, values int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	weight := min(values, r.total)
	if weight <= r.free {
		return true
	}
	has := r.held[key]
	if has >= weight {
		return true
	}
	r.put(key, -has)
	if len(r.waiting) == 0 && r.fits(key.Namespace, weight) {
		r.put(key, weight)
		return true
	}
	r.unwait(key)
	r.waiting = append(r.waiting, waiter{key, weight})
	r.next(key)
	return r.held[key] >= weight
}

func (r *Room) fits(namespace string, weight int64) bool {
	return r.used+weight <= r.total && (r.by[namespace] == 0 || r.by[namespace]+weight <= r.total/2)
}

// put changes how much an object holds.
func (r *Room) put(key types.NamespacedName, change int64) {
	r.used += change
	if r.by[key.Namespace] += change; r.by[key.Namespace] == 0 {
		delete(r.by, key.Namespace)
	}
	if r.held[key] += change; r.held[key] == 0 {
		delete(r.held, key)
	}
}

// next promises room to waiting objects, and wakes them, except the asking one. An object without enough room blocks later
// ones, or it would wait for ever, unless its namespace has used up its share.
func (r *Room) next(asking types.NamespacedName) {
	for {
		best := -1
		for i, w := range r.waiting {
			if r.by[w.key.Namespace] > 0 && r.by[w.key.Namespace]+w.weight > r.total/2 {
				continue
			}
			if best < 0 || r.by[w.key.Namespace] < r.by[r.waiting[best].key.Namespace] {
				best = i
			}
		}
		if best < 0 || !r.fits(r.waiting[best].key.Namespace, r.waiting[best].weight) {
			return
		}
		w := r.waiting[best]
		r.waiting = slices.Delete(r.waiting, best, best+1)
		r.put(w.key, w.weight)
		if w.key != asking {
			r.wake(w.key)
		}
	}
}

func (r *Room) unwait(key types.NamespacedName) {
	r.waiting = slices.DeleteFunc(r.waiting, func(w waiter) bool { return w.key == key })
}

// Leave releases what an object holds or was promised.
func (r *Room) Leave(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[key] > 0 {
		r.put(key, -r.held[key])
		r.next(key)
	}
}

// Forget is Leave, and also stops waiting.
func (r *Room) Forget(key types.NamespacedName) {
	r.mu.Lock()
	r.unwait(key)
	r.mu.Unlock()
	r.Leave(key)
}

// Held is how many values are held.
func (r *Room) Held() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}
