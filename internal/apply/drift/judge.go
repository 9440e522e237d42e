// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"time"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// sighted records what a watch or a list shows of an object. A changed generation is ignored only
// if each write since the object was as wanted was seen to be of a subresource: a list
// may hide some writes when there is no generation to count them by.
func (h *Hub) sighted(i *item, s sight, listed bool) {
	if s.version != 0 && s.version <= i.got.version && s.presence != absent {
		return // already reported by a list or an earlier watch
	}
	i.got = s
	if i.expected {
		return
	}
	switch i.want.compare(s) {
	case none:
		i.good = s.writers
	case moved:
		if (!listed || s.writers.generation != 0) && i.good.partsOnly(s.writers) {
			i.want.seen = s.seen
			i.adopted = true
			i.good = s.writers
		} else {
			i.good = writers{}
		}
	case changed, deleted:
		i.good = writers{}
	}
	h.judge(i)
}

// judge wakes the deployment of an item if the item gives a reason.
func (h *Hub) judge(i *item) {
	if i.expected {
		return
	}
	h.judgeDrift(i)
	h.judgeHealth(i)
}

// judgeDrift tells whether it woke the deployment.
func (h *Hub) judgeDrift(i *item) bool {
	sub, now := i.sub, time.Now()
	found := i.want.compare(i.got)
	_, known := sub.drifted[i]
	if !sub.drift || found == none {
		delete(sub.drifted, i)
		i.reported = state{}
		if known && sub.driftResolved {
			h.wake(sub, true, driftPause)
		}
		return false
	}
	sub.drifted[i] = struct{}{}
	if sub.busy || i.reported == i.got.state() {
		return false
	}
	if _, waits := sub.settleUntil[i.id()]; found == moved && !waits {
		sub.settleUntil[i.id()] = now.Add(h.options.Settle)
	}
	if until := sub.ignoredUntil(i.id(), found); now.Before(until) {
		h.options.Wake(sub.key, until.Sub(now)+driftPause)
		return false
	}
	h.options.Wake(sub.key, driftPause)
	return true
}

// ignoredUntil is until when the drift of an object is ignored.
func (s *subscriber) ignoredUntil(id inventory.ID, found drift) time.Time {
	until := s.conflictUntil[id]
	if settle := s.settleUntil[id]; found == moved && settle.After(until) {
		return settle
	}
	return until
}

func (h *Hub) judgeHealth(i *item) {
	sub := i.sub
	if !i.health || i.got.presence == unknown || i.got.version <= i.looked {
		delete(sub.changed, i)
		return
	}
	sub.changed[i] = struct{}{}
	if i.got.version <= i.shown {
		return
	}
	h.wake(sub, false, healthPause)
}

// wake reconciles the deployment, now or after the reconcile that is in
// progress.
func (h *Hub) wake(sub *subscriber, after bool, pause time.Duration) {
	if !sub.busy {
		h.options.Wake(sub.key, pause)
		return
	}
	sub.after = sub.after || after
}
