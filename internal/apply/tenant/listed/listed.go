// SPDX-License-Identifier: Apache-2.0

// Package listed shares one LIST of a collection among the deployments of an account that are planned at the same time: which
// names are free. A deployment that is planned alone is not affected.
package listed

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// Age is how old a shared list may be.
	Age = time.Second
	// Most is how many objects a collection may have. Larger ones are not shared: a LIST would cost more than the reads that it saves.
	Most = 250
	// Pause is how long a collection is not listed again after it had more objects, or could not be listed.
	Pause = time.Minute
	// mostCollections is how many collections of an account are remembered.
	mostCollections = 32
)

// Key is a collection: the objects of a resource in a namespace.
type Key struct {
	Resource  schema.GroupVersionResource
	Namespace string
}

// Read requests the names in a collection. complete tells that these are all.
type Read func(ctx context.Context) (names []string, complete bool, err error)

// Collections are those that one account reads. They must not be shared between accounts: what one may list, another may not. It is
// safe for concurrent use.
type Collections struct {
	now  func() time.Time
	mu   sync.Mutex
	kept *cache.LRUExpireCache // Key to *collection
}

// collection is what is remembered of a collection.
type collection struct {
	asker  string    // the last deployment that wanted to know names
	asked  time.Time // and when
	paused time.Time // it is not listed before
	last   *Names    // the last list, or the one under way; nil: none
}

// New makes collections without lists.
func New(now func() time.Time) *Collections {
	return &Collections{now: now, kept: cache.NewLRUExpireCacheWithClock(mostCollections, clock(now))}
}

type clock func() time.Time

// Now implements the clock of the cache.
func (c clock) Now() time.Time { return c() }

// Find returns the names in a collection, from a list that was requested at most Age ago, or is requested now because another
// deployment asked within Age. It is nil where the asker has to read its objects itself: it is the only one that asks, the
// collection has too many objects, or it cannot be listed.
func (c *Collections) Find(ctx context.Context, key Key, asker string, read Read) *Names {
	names, first := c.choose(key, asker)
	if names == nil {
		return nil
	}
	if first {
		c.fill(ctx, key, names, read)
	} else {
		names.wait(ctx, Age-c.now().Sub(names.sent))
	}
	if !names.known() {
		return nil
	}
	return names
}

// choose returns the list to use; first tells that the asker has to request it.
func (c *Collections) choose(key Key, asker string) (names *Names, first bool) {
	if asker == "" {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	shared := c.remembered(key)
	if shared == nil {
		shared = &collection{}
	}
	c.kept.Add(key, shared, Pause)
	others := shared.asker != "" && shared.asker != asker && now.Sub(shared.asked) <= Age
	shared.asker = asker
	shared.asked = now
	switch {
	case now.Before(shared.paused):
		return nil, false
	case shared.last != nil && now.Sub(shared.last.sent) <= Age:
		return shared.last, false
	case !others:
		return nil, false
	}
	shared.last = &Names{sent: now, answered: make(chan struct{}), present: map[string]struct{}{}}
	return shared.last, true
}

// remembered returns what is remembered of a collection; nil: nothing.
func (c *Collections) remembered(key Key) *collection {
	kept, _ := c.kept.Get(key)
	shared, _ := kept.(*collection)
	return shared
}

// fill requests a list.
func (c *Collections) fill(ctx context.Context, key Key, names *Names, read Read) {
	defer close(names.answered)
	found, complete, err := read(ctx)
	if err == nil && complete {
		names.set(found)
		time.AfterFunc(Age, names.drop) // so that memory is bounded by what is listed within Age
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	shared := c.remembered(key)
	if shared == nil {
		return
	}
	if shared.last == names {
		shared.last = nil
	}
	if ctx.Err() == nil {
		shared.paused = c.now().Add(Pause)
	}
}

// Created notes that the account created an object.
func (c *Collections) Created(key Key, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if shared := c.remembered(key); shared != nil && shared.last != nil {
		shared.last.add(name)
	}
}

// Forget drops the list of a collection, which proved to be outdated: the next asker reads its objects itself.
func (c *Collections) Forget(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Remove(key)
}

// Names are the names in a collection.
type Names struct {
	sent     time.Time
	answered chan struct{} // closed when the list is there, or cannot be had

	mu      sync.Mutex
	present map[string]struct{}
	usable  bool
}

// Lack tells that an object did not exist when the list was requested. It is false where that is not known any more.
func (n *Names) Lack(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, exists := n.present[name]
	return n.usable && !exists
}

// wait waits until the list is there, at most as long as it may be used.
func (n *Names) wait(ctx context.Context, longest time.Duration) {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-n.answered:
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (n *Names) known() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.usable
}

func (n *Names) set(names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range names {
		n.present[name] = struct{}{}
	}
	n.usable = true
}

func (n *Names) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.present != nil {
		n.present[name] = struct{}{}
	}
}

func (n *Names) drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.present, n.usable = nil, false
}
