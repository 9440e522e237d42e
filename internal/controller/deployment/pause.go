// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"time"

	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/render"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// pause returns the time until the next reconcile, and keeps the note for it.
func (r *Reconciler) pause(s *state, err error) time.Duration {
	spec, key := &s.Object.Spec, s.Key()
	if s.settled.RejectedNow {
		r.backoff.Succeeded(key)
		r.memory.Keep(key, s.emptyNote())
		return time.Second / 10
	}
	if err != nil {
		r.forgetAfter(err, s)
		if unusable(failure.Of(err).Reason) {
			return kubeconfigPause
		}
		if f := failure.Of(err); f.Stalled || f.Woken {
			pause := pipeline.IntervalPause(effective.Interval(spec))
			if s.comparisonSkipped {
				return min(pause, max(time.Second/10, s.untilCompared()))
			}
			return pause
		}
		if f := failure.Of(err); f.After > 0 {
			return f.After
		}
		return r.backoff.Failed(key, min(effective.RetryInterval(spec), effective.Interval(spec)))
	}
	r.backoff.Succeeded(key)
	if s.settling(nil).Finished() {
		s.note.Applying.Pauses = 0
		r.memory.Keep(key, s.note)
		return pipeline.IntervalPause(max(time.Second/10, effective.Interval(spec)-s.Now.Sub(s.note.Checked)))
	}
	if s.delivered.Cut != stage.Uncut {
		r.memory.Keep(key, s.note)
		return turnPause
	}
	looks := s.note.Applying.Pauses
	s.note.Applying.Pauses++
	r.memory.Keep(key, s.note)
	return s.settling(nil).Pause(looks)
}

// emptyNote is a note after which the next reconcile compares everything, but not from a copy of the deployment that is older
// than the last write, and without deleting again what made no room.
func (s *state) emptyNote() stage.Note {
	return stage.Note{UID: s.Object.UID, Version: s.note.Version, Applying: stage.ApplyingNote{Room: s.note.Applying.Room}}
}

// forgetAfter empties the note of a failed reconcile. While a conversion is under way, it keeps since when the apply waits: an
// apply that is converted again in each reconcile would never reach its timeout otherwise; and that the applied revision was compared, so
// that keepApplied need not repeat that.
func (r *Reconciler) forgetAfter(err error, s *state) {
	before := r.memory.Recall(s.Key(), s.Object.UID)
	note := s.emptyNote()
	if errors.Is(err, render.ErrPending) && !before.Applying.Waits.IsZero() {
		note.Attempt = before.Attempt
		note.Applying = before.Applying
	}
	if s.comparisonSkipped {
		note.Planned.Steady = true
		note.Checked = before.Checked
		note.Renew = before.Renew
	}
	r.memory.Keep(s.Key(), note)
}
