// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"time"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// holdPhase waits for the health of earlier phases. Each phase has the whole timeout.
func (in *Input) holdPhase(held *apply.PhaseWait) {
	if held == nil {
		return
	}
	if in.Note.Applying.Phase != nil && in.Note.Applying.Phase.Phase < held.Phase {
		in.Note.Applying.Waits, in.Note.Applying.Pauses = time.Time{}, 0
	}
	in.Delivered.Phase = held
}

// StillHeld checks only the objects that a phase waits for, while they are not healthy
// and the interval is not over.
func (st *Stage) StillHeld(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	held := in.Note.Applying.Phase
	if in.Note.Attempt == in.Resolved.Attempt(in.Subject) && in.Note.Applying.Hook != nil {
		waits, err := st.Hooks.StillRuns(ctx, in.Operation())
		if waits == "" || err != nil {
			return pipeline.Continue, err
		}
		in.Delivered.WaitsFor = waits
		return pipeline.Stop, nil
	}
	if held == nil || in.Note.Attempt != in.Resolved.Attempt(in.Subject) || in.Now.Sub(in.Note.Applying.PhaseSince) >= effective.Interval(&in.Object.Spec) {
		return pipeline.Continue, nil
	}
	rules := in.Rules
	rules.Everything = false
	report, err := rules.Check(ctx, in.Resolved.Access.Client, held.Objects, nil)
	if err != nil || report.Healthy() {
		return pipeline.Continue, err
	}
	in.Delivered.Phase = &apply.PhaseWait{For: held.For, Phase: held.Phase, Objects: held.Objects, Report: report}
	in.Delivered.WaitsFor = in.Delivered.Phase.String()
	return pipeline.Stop, nil
}
