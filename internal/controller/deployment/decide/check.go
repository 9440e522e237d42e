// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// Preflight checks every permission that the plan needs. Drift correction of the applied
// revision skips it: there the API server reports missing permissions for each object.
func (st *Stage) Preflight(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if !in.Resolved.Due || in.Keeping {
		return pipeline.Continue, nil
	}
	permissions, err := preflight.Check(ctx, in.Resolved.Access.Client, *in.Decided.Plan)
	if err != nil {
		return pipeline.Stop, err
	}
	in.Decided.Warnings = append(in.Decided.Warnings, permissions.Warnings...)
	if err := refused(permissions.Violations); err != nil {
		return pipeline.Stop, err
	}
	return pipeline.Continue, in.Rendered.Issued.Unseen(in.Decided.Plan)
}

// refused is the failure of a plan with violations, a line each.
func refused(violations []violation.Violation) error {
	if len(violations) == 0 {
		return nil
	}
	lines := make([]string, 0, len(violations))
	for _, v := range violations {
		lines = append(lines, v.String())
	}
	return failure.Error{Reason: v1alpha1.ReasonPlanRefused, Err: errors.New(strings.Join(lines, "\n"))}
}

// DryRun sends the writes of the plan to the API server as dry runs.
func (st *Stage) DryRun(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if !in.Resolved.Due {
		return pipeline.Continue, nil
	}
	check, err := st.tryPlan(ctx, in)
	if err != nil {
		return pipeline.Stop, err
	}
	in.Decided.Plan.Recreates(check.Recreate)
	if !in.Keeping {
		in.Decided.Plan.Warnings = append(in.Decided.Plan.Warnings, check.Notes...)
	}
	if len(check.Failed) > 0 && in.Keeping {
		in.Decided.LeftOut = append(in.Decided.LeftOut, in.Decided.LeaveOut(check.Failed)...)
		return pipeline.Continue, nil
	}
	if len(check.Failed) > 0 {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonDryRunFailed, Err: in.Resolved.ObjectErrors(ctx, in.Subject, in.Listed, check.Failed)}
	}
	return in.awaitRoom(ctx, check.Successors)
}

// tryPlan is the dry run of a plan. Dry runs that are remembered are skipped: see KeepDryRuns. Those of other clusters are
// remembered at once, since the turn may end at any time; others if a request failed, for the next attempt.
func (st *Stage) tryPlan(ctx context.Context, in *Input) (dryrun.Result, error) {
	options := dryrun.Options{Recreate: in.Recreates(), Earlier: func(entry inventory.Entry) []*unstructured.Unstructured {
		return in.Rendered.Earlier(in.Subject, entry)
	}}
	if room := in.room(); room != nil {
		options.Gone = room.Deletions
	}
	if key := in.Key(); st.Progress.HasPassed(key) {
		options.Tried = func(action plan.Action) bool { return st.Progress.Passed(key, action.ID, in.tried(action)) }
	}
	check, err := dryrun.Run(ctx, in.Resolved.Access.Client, *in.Decided.Plan, options)
	if in.Keeping {
		return check, err
	}
	in.Decided.Passed = make(map[inventory.ID]bool, len(check.Accepted))
	for i := range check.Accepted {
		in.Decided.Passed[check.Accepted[i].ID] = true
	}
	if in.Resolved.Access.Remote != "" || err != nil {
		st.KeepDryRuns(in)
		in.Decided.Tried = len(in.Decided.Passed) > 0
	}
	return check, err
}

// KeepDryRuns remembers the dry runs that passed in this reconcile. The next one does not repeat them for the same spec,
// content and live object, whatever else it decides differently.
func (st *Stage) KeepDryRuns(in *Input) {
	if len(in.Decided.Passed) == 0 {
		return
	}
	passed := make(map[inventory.ID]string, len(in.Decided.Passed))
	for action := range in.Decided.Plan.Actions() {
		if in.Decided.Passed[action.ID] {
			passed[action.ID] = in.tried(*action)
		}
	}
	st.Progress.Pass(in.Key(), passed)
}

// tried identifies what a dry run of an action depends on. The generation stands for the ServiceAccount and the cluster.
func (in *Input) tried(action plan.Action) string {
	return fmt.Sprintf("%s@%s of %d", action.Rendered, in.Decided.Observed[action.ID].ResourceVersion, in.Object.Generation)
}
