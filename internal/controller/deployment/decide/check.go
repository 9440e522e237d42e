// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"errors"
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
	if len(check.Failed) > 0 && in.Keeping {
		in.Decided.LeftOut = append(in.Decided.LeftOut, in.Decided.LeaveOut(check.Failed)...)
		return pipeline.Continue, nil
	}
	if len(check.Failed) > 0 {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonDryRunFailed, Err: in.Resolved.ObjectErrors(ctx, in.Subject, in.Listed, check.Failed)}
	}
	return pipeline.Continue, nil
}

// tryPlan is the dry run of a plan. For other clusters, objects that passed it in an earlier turn and did not change are
// skipped.
func (st *Stage) tryPlan(ctx context.Context, in *Input) (dryrun.Result, error) {
	key := in.Key()
	options := dryrun.Options{Recreate: in.Recreates(), Earlier: func(entry inventory.Entry) []*unstructured.Unstructured {
		return in.Rendered.Earlier(in.Subject, entry)
	}}
	if in.Resolved.Access.Remote == "" {
		return dryrun.Run(ctx, in.Resolved.Access.Client, *in.Decided.Plan, options)
	}
	stateOf := func(action plan.Action) string {
		return action.Rendered.String() + "@" + in.Decided.Observed[action.ID].ResourceVersion
	}
	options.Tried = func(action plan.Action) bool { return st.Progress.Passed(key, action.ID, stateOf(action)) }
	check, err := dryrun.Run(ctx, in.Resolved.Access.Client, *in.Decided.Plan, options)
	if !in.Keeping {
		passed := make(map[inventory.ID]string, len(check.Accepted))
		for _, action := range check.Accepted {
			passed[action.ID] = stateOf(action)
		}
		st.Progress.Pass(key, passed)
		in.Decided.Tried = len(passed) > 0
	}
	return check, err
}
