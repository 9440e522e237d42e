// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// stream is one watch, with the objects that deployments subscribe to. All
// of it but the key is guarded by the hub's mutex.
type stream struct {
	key    streamKey
	client *tenant.Client
	items  map[string]*item
	cancel context.CancelFunc // nil: it does not run because of the limit
	// open: every change is reported. why is the reason while the collection
	// cannot be watched.
	open bool
	why  string
	// kick ends the pause or the watch, to list again.
	kick   chan struct{}
	relist bool
}

// keyOf identifies the watch of an object.
func keyOf(s Subscription, o *Object) streamKey {
	return streamKey{
		target: s.Target, identity: s.Client.Identity(), tenant: s.Owner.Namespace, resource: o.Resource, kind: o.GroupKind(), namespace: o.Namespace,
	}
}

// holds tells whether an object is one of the collection.
func (s *stream) holds(o *Object) bool {
	return s.key.namespace == o.Namespace && s.key.kind.Kind == o.Kind && s.key.kind.Group == o.Group && s.key.resource == o.Resource
}

// stream finds the watch of an object, or opens it.
func (h *Hub) stream(sub *subscriber, s Subscription, o *Object) *stream {
	key := keyOf(s, o)
	found := h.streams[key]
	if found == nil {
		found = &stream{key: key, items: map[string]*item{}, kick: make(chan struct{}, 1)}
		h.streams[key] = found
	}
	found.client = s.Client
	if found.cancel == nil {
		h.admit(found)
	}
	if _, known := sub.streams[found]; !known {
		sub.streams[found] = 0
	}
	return found
}

// find returns the item of a deployment.
func (s *stream) find(name string, of *subscriber) *item {
	for i := s.items[name]; i != nil; i = i.next {
		if i.sub == of {
			return i
		}
	}
	return nil
}

// drop removes the items for which gone holds. Their streams go on: see release.
func (s *subscriber) drop(gone func(*item) bool) {
	kept := s.items[:0]
	for _, i := range s.items {
		if !gone(i) {
			kept = append(kept, i)
			continue
		}
		i.stream.remove(i)
		s.streams[i.stream]--
		delete(s.drifted, i)
		delete(s.changed, i)
	}
	clear(s.items[len(kept):])
	s.items = kept
}

// remove takes one item out of those of its object.
func (s *stream) remove(gone *item) {
	first := s.items[gone.name]
	if first == gone {
		if gone.next == nil {
			delete(s.items, gone.name)
			return
		}
		s.items[gone.name] = gone.next
		return
	}
	for i := first; i != nil; i = i.next {
		if i.next == gone {
			i.next = gone.next
			return
		}
	}
}

// release ends a stream that a deployment does not need any more, if no other deployment does.
func (h *Hub) release(sub *subscriber, s *stream) {
	if sub.streams[s] > 0 {
		return
	}
	delete(sub.streams, s)
	if len(s.items) > 0 {
		return
	}
	delete(h.streams, s.key)
	if s.cancel == nil {
		return
	}
	s.cancel()
	h.shares.add(holderOf(s.key.identity), -1)
}

// again requests a new list.
func (s *stream) again() {
	s.relist = true
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// wakeAll reconciles all deployments of a stream, because its coverage changed.
func (h *Hub) wakeAll(s *stream) {
	for _, sub := range h.subs {
		if _, uses := sub.streams[s]; uses {
			h.wake(sub, true, healthPause)
		}
	}
}

// state of a stream, from its own goroutine.
func (h *Hub) state(s *stream, open bool, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := s.why
	s.open = open
	s.why = why
	if was != why {
		h.wakeAll(s)
	}
}

// listed processes a complete list: objects that are not in it do not exist.
func (h *Hub) listed(s *stream, seen map[string]struct{}, version string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := number(version)
	for name, first := range s.items {
		if _, found := seen[name]; found {
			continue
		}
		for i := first; i != nil; i = i.next {
			if at >= i.want.since && at >= i.got.version && i.got.presence != absent {
				h.sighted(i, sight{presence: absent, version: at}, true)
			}
		}
	}
}

// how is the way in which a list or a watch shows an object.
type how uint8

const (
	inList how = iota
	asWritten
	asDeleted
)

// show processes an object of a list or an event of a watch.
func (h *Hub) show(s *stream, object metav1.Object, shown how) {
	for _, watcher := range h.watchers(s, object.GetName()) {
		seen := sight{presence: absent, version: number(object.GetResourceVersion())}
		if shown != asDeleted {
			seen = sightOf(object, watcher.sub.manager)
		}
		h.mu.Lock()
		if s.find(watcher.name, watcher.sub) == watcher {
			h.events++
			h.sighted(watcher, seen, shown == inList)
		}
		h.mu.Unlock()
	}
}

// watchers are the items of an object: mostly one, and none for foreign objects.
func (h *Hub) watchers(s *stream, name string) []*item {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []*item
	for i := s.items[name]; i != nil; i = i.next {
		list = append(list, i)
	}
	return list
}

// selector selects the objects of the tenant's namespace, by their labels. An object
// that loses the label looks deleted.
func (k streamKey) selector() string {
	return inventory.LabelNamespace + "=" + k.tenant
}

func (k streamKey) ref() tenant.Ref {
	return tenant.Ref{Resource: k.resource, Namespace: k.namespace}
}
