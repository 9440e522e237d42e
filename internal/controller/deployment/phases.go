// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// holdPhase waits for the health of earlier phases. Each phase has the whole timeout.
func (s *state) holdPhase(held *apply.PhaseWait) {
	if held == nil {
		return
	}
	if s.note.applying.phase != nil && s.note.applying.phase.Phase < held.Phase {
		s.note.applying.waits, s.note.applying.pauses = time.Time{}, 0
	}
	s.delivered.phase = held
}

// stillHeld checks only the objects that a phase waits for, while they are not healthy
// and the interval is not over.
func (r *Reconciler) stillHeld(ctx context.Context, s *state) (pipeline.Outcome, error) {
	held := s.note.applying.phase
	if s.note.attempt == s.attempt() && s.note.applying.hook != nil {
		waits, err := r.stillRuns(ctx, s)
		if waits == "" || err != nil {
			return pipeline.Continue, err
		}
		s.delivered.waitsFor = waits
		return pipeline.Stop, nil
	}
	if held == nil || s.note.attempt != s.attempt() || s.now.Sub(s.note.applying.phaseSince) >= s.object.Spec.IntervalOrDefault() {
		return pipeline.Continue, nil
	}
	rules := s.rules
	rules.Everything = false
	report, err := rules.Check(ctx, s.resolved.access.Client, held.Objects, nil)
	if err != nil || report.Healthy() {
		return pipeline.Continue, err
	}
	s.delivered.phase = &apply.PhaseWait{Phase: held.Phase, Objects: held.Objects, Report: report}
	s.delivered.waitsFor = s.delivered.phase.String()
	return pipeline.Stop, nil
}

// waiting says why an unfinished apply waits, and whether it has timed out.
func (s *state) waiting() (reason string, over bool) {
	over = s.waitedLong() || s.delivered.phase != nil && s.delivered.phase.Report.Failed()
	switch {
	case s.delivered.phase != nil && over:
		return v1alpha1.ReasonHealthFailed, true
	case s.delivered.phase != nil:
		return v1alpha1.ReasonHealthProgressing, false
	case over:
		return v1alpha1.ReasonApplyFailed, true
	}
	return v1alpha1.ReasonProgressing, false
}
