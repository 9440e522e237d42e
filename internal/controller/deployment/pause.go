// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// finished tells that no work is unfinished: everything is applied, healthy and pruned.
func (s *state) finished() bool {
	return s.delivered.WaitsFor == "" && s.delivered.Hooks.Waits == "" && (s.settled.Health == nil || s.settled.Health.Healthy() && len(s.note.Planned.Prune) == 0)
}

// pause returns the time until the next reconcile, and keeps the note for it.
func (r *Reconciler) pause(s *state, err error) time.Duration {
	spec, key := &s.Object.Spec, s.Key()
	if s.settled.RejectedNow {
		r.backoff.Succeeded(key)
		r.memory.Keep(key, stage.Note{UID: s.Object.UID})
		return time.Second / 10
	}
	if err != nil {
		r.memory.Forget(key)
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
		s.note.Applying.Pauses = 0
		r.memory.Keep(key, s.note)
		return pipeline.IntervalPause(max(time.Second/10, spec.IntervalOrDefault()-s.Now.Sub(s.note.Checked)))
	}
	if s.delivered.Cut != stage.Uncut {
		r.memory.Keep(key, s.note)
		return turnPause
	}
	looks := s.note.Applying.Pauses
	s.note.Applying.Pauses++
	r.memory.Keep(key, s.note)
	switch {
	case s.delivered.WaitsFor != "" && s.waitedLong():
		return min(spec.RetryIntervalOrDefault(), spec.IntervalOrDefault())
	case s.delivered.WaitsFor != "", s.delivered.Hooks.Waits != "":
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
	case !s.note.Health.UnhealthySince.IsZero():
		return max(recovery-s.Now.Sub(s.note.Health.UnhealthySince), time.Second/10)
	case s.watched():
		return min(watchedPause<<min(looks, 4), s.untilOverdue())
	}
	return pollPause(looks)
}

// watchedPause is the first pause between checks of unhealthy objects that are watched.
const watchedPause = 2 * time.Second

// untilOverdue is the time until the timeout to become healthy.
func (s *state) untilOverdue() time.Duration {
	deadline := s.note.Applying.Wrote
	if at := s.Object.Status.LastAppliedTime; at != nil && at.After(deadline) {
		deadline = at.Time
	}
	return max(time.Second, deadline.Add(s.Object.Spec.TimeoutOrDefault()).Sub(s.Now)+time.Second)
}
