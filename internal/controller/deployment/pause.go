// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/controller/retry"
)

// settled tells that nothing is under way: everything is applied and healthy, and
// nothing is going.
func (s *state) settled() bool {
	return s.waitsFor == "" && s.hookWaits == "" && (s.health == nil || s.health.Healthy() && len(s.note.prune) == 0)
}

// pause is how long until the next look, and keeps what that look needs.
func (r *Reconciler) pause(s *state, err error) time.Duration {
	spec, key := &s.object.Spec, client.ObjectKeyFromObject(s.object)
	if s.givenUp {
		r.backoff.Succeeded(key)
		r.memory.keep(key, note{uid: s.object.UID})
		return time.Second / 10
	}
	if err != nil {
		r.memory.forget(key)
		if unusable(judge(err).reason) {
			return kubeconfigPause
		}
		if f := judge(err); f.stalled || f.woken {
			return retry.Interval(spec.IntervalOrDefault())
		}
		if f := judge(err); f.after > 0 {
			return f.after
		}
		return r.backoff.Failed(key, min(spec.RetryIntervalOrDefault(), spec.IntervalOrDefault()))
	}
	r.backoff.Succeeded(key)
	if s.settled() {
		s.note.pauses = 0
		r.memory.keep(key, s.note)
		return retry.Interval(max(time.Second/10, spec.IntervalOrDefault()-s.now.Sub(s.note.checked)))
	}
	if s.cut != uncut {
		r.memory.keep(key, s.note)
		return turnPause
	}
	looks := s.note.pauses
	s.note.pauses++
	r.memory.keep(key, s.note)
	switch {
	case s.waitsFor != "" && s.waitedLong():
		return min(spec.RetryIntervalOrDefault(), spec.IntervalOrDefault())
	case s.waitsFor != "", s.hookWaits != "":
		return pace(looks)
	case s.overdue():
		return min(spec.RetryIntervalOrDefault(), spec.IntervalOrDefault())
	}
	return min(s.patience(looks), spec.IntervalOrDefault())
}

// patience is the pause before looking again at what is not healthy. Where watches
// tell of its status, all that may change without is why its Pods do not run.
func (s *state) patience(looks int) time.Duration {
	switch {
	case !s.note.sick.IsZero():
		return max(recovery-s.now.Sub(s.note.sick), time.Second/10)
	case s.watched():
		return min(watchedPause<<min(looks, 4), s.untilOverdue())
	}
	return pace(looks)
}

// watchedPause is the first pause between looks at unhealthy objects that are watched.
const watchedPause = 2 * time.Second

// untilOverdue is how long until the time to become healthy is over.
func (s *state) untilOverdue() time.Duration {
	deadline := s.note.wrote
	if at := s.object.Status.LastAppliedTime; at != nil && at.After(deadline) {
		deadline = at.Time
	}
	return max(time.Second, deadline.Add(s.object.Spec.TimeoutOrDefault()).Sub(s.now)+time.Second)
}
