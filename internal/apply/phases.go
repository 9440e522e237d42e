// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// held tells whether a stage, as the first of its phase, has to wait: it or a later stage
// contains something new, and the objects of the phases before are not healthy. A repair
// does not wait. The function does not block: the caller calls again.
func (a *application) held(ctx context.Context, p plan.Plan, at int) (bool, error) {
	if at == 0 || p.Keeping || p.Stages[at].Phase == p.Stages[at-1].Phase || !slices.ContainsFunc(p.Stages[at:], brings) {
		return false, nil
	}
	rules := a.options.Rules
	rules.Everything = false
	var objects []plan.Object
	for _, stage := range p.Stages[:at] {
		for _, action := range stage.Actions {
			if !action.Untracked && rules.Looks(action.Object) {
				object := action.Object
				object.Desired = nil
				objects = append(objects, object)
			}
		}
	}
	report, err := rules.Check(ctx, a.client, objects, a.result.Live)
	switch {
	case err != nil:
		a.result.Stage = p.Stages[at].Name
		return true, fmt.Errorf("before phase %d: %w", p.Stages[at].Phase, err)
	case report.Healthy():
		return false, nil
	}
	a.result.Stage = p.Stages[at].Name
	a.result.Waits = &PhaseWait{Phase: p.Stages[at].Phase, Objects: objects, Report: report}
	a.result.Pending = a.result.Waits.String()
	return true, nil
}

// String says what a phase waits for.
func (h PhaseWait) String() string {
	if h.For != "" {
		return h.For + ": " + h.Report.Message()
	}
	return fmt.Sprintf("phase %d waits until what comes before it is healthy: %s", h.Phase, h.Report.Message())
}

// brings tells whether a stage contains something new.
func brings(stage plan.Stage) bool {
	return slices.ContainsFunc(stage.Actions, func(action plan.Action) bool {
		return action.Verb == plan.Create || action.Verb == plan.Update || action.Verb == plan.Adopt
	})
}
