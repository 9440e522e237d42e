// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"maps"
	"strings"
)

// Expect names the objects that a deployment is about to create, between Begin and End. It keeps
// what an open watch reports about them from now on until Set says how they
// were left, so that no new list is needed for them: with many deployments in a
// namespace, each would list all of their objects. Objects that Set does not name are
// forgotten at End.
func (h *Hub) Expect(key Key, s Subscription) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	for i := range s.Objects {
		if o := &s.Objects[i]; h.streams[keyOf(s, o)] != nil {
			h.expect(key, s, o)
		}
	}
}

func (h *Hub) expect(key Key, s Subscription, o *Object) {
	known := h.subs[key] != nil
	sub := h.subscriber(key, s)
	if !known {
		sub.tentative, sub.busy = true, true
	}
	if stream := h.stream(sub, s, o); stream.find(o.Name, sub) == nil {
		h.add(sub, stream, o).expected = true
		sub.expects = true
	}
}

// add subscribes a deployment to an object.
func (h *Hub) add(sub *subscriber, s *stream, o *Object) *item {
	added := &item{sub: sub, stream: s, name: strings.Clone(o.Name), next: s.items[o.Name]}
	s.items[added.name] = added
	sub.streams[s]++
	sub.items = append(sub.items, added)
	return added
}

// meet records the writers of an object that is as it is wanted.
func (i *item) meet() {
	if i.got.presence == present && i.got.version >= i.want.since && i.want.compare(i.got) == none {
		i.good = i.got.writers
	}
}

// unmet drops the expected objects that were not created.
func (h *Hub) unmet(sub *subscriber) {
	if !sub.expects {
		return
	}
	sub.expects = false
	sub.drop(func(i *item) bool { return i.expected })
	for stream := range maps.Clone(sub.streams) {
		h.release(sub, stream)
	}
	if sub.tentative {
		delete(h.subs, sub.key)
	}
}
