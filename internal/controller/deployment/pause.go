// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// finished tells that no work is unfinished: everything is applied, healthy and pruned.
func (s *state) finished() bool {
	return s.delivered.waitsFor == "" && s.settled.hookWaits == "" && (s.settled.health == nil || s.settled.health.Healthy() && len(s.note.planned.prune) == 0)
}

// pause returns the time until the next reconcile, and keeps the note for it.
func (r *Reconciler) pause(s *state, err error) time.Duration {
	spec, key := &s.object.Spec, client.ObjectKeyFromObject(s.object)
	if s.settled.rejectedNow {
		r.backoff.Succeeded(key)
		r.memory.keep(key, note{uid: s.object.UID})
		return time.Second / 10
	}
	if err != nil {
		r.memory.forget(key)
		if unusable(failure.Of(err).Reason) {
			return kubeconfigPause
		}
		if f := failure.Of(err); f.Stalled || f.Woken {
			return pipeline.IntervalPause(spec.IntervalOrDefault())
		}
		if f := failure.Of(err); f.After > 0 {
			return f.After
		}
		return r.backoff.Failed(key, min(spec.RetryIntervalOrDefault(), spec.IntervalOrDefault()))
	}
	r.backoff.Succeeded(key)
	if s.finished() {
		s.note.applying.pauses = 0
		r.memory.keep(key, s.note)
		return pipeline.IntervalPause(max(time.Second/10, spec.IntervalOrDefault()-s.now.Sub(s.note.checked)))
	}
	if s.delivered.cut != uncut {
		r.memory.keep(key, s.note)
		return turnPause
	}
	looks := s.note.applying.pauses
	s.note.applying.pauses++
	r.memory.keep(key, s.note)
	switch {
	case s.delivered.waitsFor != "" && s.waitedLong():
		return min(spec.RetryIntervalOrDefault(), spec.IntervalOrDefault())
	case s.delivered.waitsFor != "", s.settled.hookWaits != "":
		return pollPause(looks)
	case s.overdue():
		return min(spec.RetryIntervalOrDefault(), spec.IntervalOrDefault())
	}
	return min(s.unhealthyPause(looks), spec.IntervalOrDefault())
}

// unhealthyPause is the pause before unhealthy objects are checked again. If their
// status is watched, only the reason why their Pods do not run may change unnoticed.
func (s *state) unhealthyPause(looks int) time.Duration {
	switch {
	case !s.note.health.unhealthySince.IsZero():
		return max(recovery-s.now.Sub(s.note.health.unhealthySince), time.Second/10)
	case s.watched():
		return min(watchedPause<<min(looks, 4), s.untilOverdue())
	}
	return pollPause(looks)
}

// watchedPause is the first pause between checks of unhealthy objects that are watched.
const watchedPause = 2 * time.Second

// untilOverdue is the time until the timeout to become healthy.
func (s *state) untilOverdue() time.Duration {
	deadline := s.note.applying.wrote
	if at := s.object.Status.LastAppliedTime; at != nil && at.After(deadline) {
		deadline = at.Time
	}
	return max(time.Second, deadline.Add(s.object.Spec.TimeoutOrDefault()).Sub(s.now)+time.Second)
}
