// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"container/heap"
	"time"
)

// rank is when an archive is evicted: those of a lower rank first, and those that are held never.
type rank uint8

const (
	unpinned rank = iota
	pinned
	held
)

// entry is a cached archive.
type entry struct {
	key   string
	size  int64
	used  time.Time
	rank  rank
	index int // in the heap
}

// entries are the cached archives. The next one to evict is found, and each change is made, without going through the others:
// a cache has one archive or more for each of thousands of deployments.
type entries struct {
	byKey map[string]*entry
	heap  evictionHeap
	bytes int64 // of all
}

// set adds an archive, or changes one.
func (e *entries) set(key string, size int64, used time.Time, as rank) {
	e.bytes += size
	found := e.byKey[key]
	if found == nil {
		found = &entry{key: key, size: size, used: used, rank: as}
		e.byKey[key] = found
		heap.Push(&e.heap, found)
		return
	}
	e.bytes -= found.size
	found.size = size
	found.used = used
	found.rank = as
	heap.Fix(&e.heap, found.index)
}

// setRank changes the rank of an archive, if there is one.
func (e *entries) setRank(key string, to rank) {
	if found := e.byKey[key]; found != nil && found.rank != to {
		found.rank = to
		heap.Fix(&e.heap, found.index)
	}
}

// remove removes an archive, if there is one.
func (e *entries) remove(key string) {
	if found := e.byKey[key]; found != nil {
		e.bytes -= found.size
		delete(e.byKey, key)
		heap.Remove(&e.heap, found.index)
	}
}

// sizeOf is the size of an archive; 0 if there is none.
func (e *entries) sizeOf(key string) int64 {
	if found := e.byKey[key]; found != nil {
		return found.size
	}
	return 0
}

// next is the archive to evict next; false if there is none.
func (e *entries) next() (key string, found bool) {
	if len(e.heap) == 0 || e.heap[0].rank == held {
		return "", false
	}
	return e.heap[0].key, true
}

// evictionHeap has the archive to evict next in front. It implements heap.Interface.
type evictionHeap []*entry

// Len implements heap.Interface.
func (h evictionHeap) Len() int { return len(h) }

// Less implements heap.Interface: lower ranks first, then the least recently used archive.
func (h evictionHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	return cmp.Or(cmp.Compare(a.rank, b.rank), a.used.Compare(b.used), cmp.Compare(a.key, b.key)) < 0
}

// Swap implements heap.Interface.
func (h evictionHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index = i
	h[j].index = j
}

// Push implements heap.Interface.
func (h *evictionHeap) Push(added any) {
	if one, ok := added.(*entry); ok {
		one.index = len(*h)
		*h = append(*h, one)
	}
}

// Pop implements heap.Interface.
func (h *evictionHeap) Pop() any {
	last := len(*h) - 1
	removed := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return removed
}
