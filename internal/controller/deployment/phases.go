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
	if s.note.Applying.Phase != nil && s.note.Applying.Phase.Phase < held.Phase {
		s.note.Applying.Waits, s.note.Applying.Pauses = time.Time{}, 0
	}
	s.delivered.Phase = held
}

// stillHeld checks only the objects that a phase waits for, while they are not healthy
// and the interval is not over.
func (r *Reconciler) stillHeld(ctx context.Context, s *state) (pipeline.Outcome, error) {
	held := s.note.Applying.Phase
	if s.note.Attempt == s.resolved.Attempt(&s.Subject) && s.note.Applying.Hook != nil {
		waits, err := r.stillRuns(ctx, s)
		if waits == "" || err != nil {
			return pipeline.Continue, err
		}
		s.delivered.WaitsFor = waits
		return pipeline.Stop, nil
	}
	if held == nil || s.note.Attempt != s.resolved.Attempt(&s.Subject) || s.Now.Sub(s.note.Applying.PhaseSince) >= s.Object.Spec.IntervalOrDefault() {
		return pipeline.Continue, nil
	}
	rules := s.Rules
	rules.Everything = false
	report, err := rules.Check(ctx, s.resolved.Access.Client, held.Objects, nil)
	if err != nil || report.Healthy() {
		return pipeline.Continue, err
	}
	s.delivered.Phase = &apply.PhaseWait{Phase: held.Phase, Objects: held.Objects, Report: report}
	s.delivered.WaitsFor = s.delivered.Phase.String()
	return pipeline.Stop, nil
}

// waiting says why an unfinished apply waits, and whether it has timed out.
func (s *state) waiting() (reason string, over bool) {
	over = s.waitedLong() || s.delivered.Phase != nil && s.delivered.Phase.Report.Failed()
	switch {
	case s.delivered.Phase != nil && over:
		return v1alpha1.ReasonHealthFailed, true
	case s.delivered.Phase != nil:
		return v1alpha1.ReasonHealthProgressing, false
	case over:
		return v1alpha1.ReasonApplyFailed, true
	}
	return v1alpha1.ReasonProgressing, false
}
