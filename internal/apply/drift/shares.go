// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"fmt"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// shares counts the watches of each holder.
type shares struct {
	by            map[tenant.Identity]int
	total, remote int // remote: those of other clusters
}

// holderOf is who the watches of an identity count for: a ServiceAccount of this cluster, or another
// cluster, whichever of its accounts is used.
func holderOf(id tenant.Identity) tenant.Identity {
	if id.Remote() {
		id.ServiceAccount = ""
	}
	return id
}

func (s *shares) add(holder tenant.Identity, change int) {
	s.total += change
	if holder.Remote() {
		s.remote += change
	}
	if s.by[holder] += change; s.by[holder] == 0 {
		delete(s.by, holder)
	}
}

// largestCluster is the other cluster with the most watches.
func (s *shares) largestCluster() (largest tenant.Identity, watches int) {
	for holder, count := range s.by {
		if holder.Remote() && count > watches {
			largest, watches = holder, count
		}
	}
	return largest, watches
}

// remoteLimit is how many watches other clusters have together: a quarter is for the accounts of this one.
func (o *Options) remoteLimit() int { return max(o.Limit-o.Limit/share, 1) }

// admit runs a stream, if the limits allow one more.
func (h *Hub) admit(s *stream) {
	holder := holderOf(s.key.identity)
	if s.why = h.refusal(holder); s.why != "" {
		return
	}
	ctx, cancel := context.WithCancel(h.ctx)
	s.cancel = cancel
	h.shares.add(holder, 1)
	h.running.Go(func() { h.run(ctx, s) })
}

// refusal is why a holder gets no further watch; "" when it does. The first line that holds decides.
//
//	the holder has its share              refused
//	there is room                         admitted
//	another cluster has at least 2 more   admitted; that cluster loses a watch
//	else                                  refused
func (h *Hub) refusal(holder tenant.Identity) string {
	has := h.shares.by[holder]
	full := fmt.Sprintf("this controller has %d watches already, which is the limit (--watch-limit)", h.shares.total)
	if !holder.Remote() {
		most := max(h.options.Limit/share, 1)
		switch {
		case h.shares.total >= h.options.Limit:
			return full
		case has >= most:
			return fmt.Sprintf("service account %s has %d watches already, which is its share of --watch-limit", holder, most)
		}
		return ""
	}
	switch {
	case has >= h.options.PerCluster:
		return fmt.Sprintf("the cluster %s has %d watches already, which is the limit of a cluster (--watches-per-cluster)", holder.Host, has)
	case h.shares.total < h.options.Limit && h.shares.remote < h.options.remoteLimit():
		return ""
	}
	if largest, watches := h.shares.largestCluster(); watches >= has+2 {
		h.retire(h.smallest(largest))
		return ""
	}
	if h.shares.remote < h.options.remoteLimit() {
		return full
	}
	return fmt.Sprintf("other clusters have %d watches already, which is their share of --watch-limit, and none has two more than this one", h.shares.remote)
}

// smallest is the running stream of a holder with the fewest objects.
func (h *Hub) smallest(holder tenant.Identity) (found *stream) {
	for key, s := range h.streams {
		if s.cancel != nil && holderOf(key.identity) == holder && (found == nil || len(s.items) < len(found.items)) {
			found = s
		}
	}
	return found
}

// retire ends the watch of a stream, and puts one that does not run in its place: the goroutine of the old one may still report
// what it has seen.
func (h *Hub) retire(s *stream) {
	idle := &stream{key: s.key, client: s.client, items: s.items, kick: make(chan struct{}, 1)}
	idle.why = "it was ended for another cluster, which had fewer watches (--watch-limit)"
	for _, first := range idle.items {
		for i := first; i != nil; i = i.next {
			i.stream = idle
		}
	}
	for _, sub := range h.subs {
		if count, uses := sub.streams[s]; uses {
			delete(sub.streams, s)
			sub.streams[idle] = count
		}
	}
	h.streams[s.key], s.items = idle, map[string]*item{}
	s.cancel()
	h.shares.add(holderOf(s.key.identity), -1)
	h.wakeAll(idle)
}
