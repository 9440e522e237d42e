// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec"
)

// makePlan compares the desired with the live objects, and makes the plan.
func (r *Reconciler) makePlan(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due {
		return pipeline.Continue, nil
	}
	asked, err := r.observing(ctx, s)
	if err != nil {
		return pipeline.Stop, err
	}
	observed, err := observe.Cluster(ctx, s.resolved.Access.Client, asked)
	if err != nil {
		return pipeline.Stop, err
	}
	made := plan.Make(observed)
	if err := r.consider(ctx, s, observed, &made); err != nil {
		return pipeline.Stop, err
	}
	s.decided.Observed = observed.Live
	if s.resolved.LeavesDrift(&s.Subject) {
		if err := r.leave(ctx, s, &made); err != nil {
			return pipeline.Stop, err
		}
	}
	s.decided.Plan = &made
	s.leaveOut(made.LeftOut)
	if !s.Keeping {
		r.awaitKinds(s, made)
	}
	if len(made.Violations) == 0 {
		return pipeline.Continue, s.Fits(made.Inventory)
	}
	lacking, err := preflight.Check(ctx, s.resolved.Access.Client, made) // so that all problems are reported at once
	if err != nil {
		return pipeline.Stop, err
	}
	s.decided.Warnings = append(s.decided.Warnings, lacking.Warnings...)
	return pipeline.Stop, refused(violation.SortViolations(append(made.Violations, lacking.Violations...)))
}

// observing collects the input of the plan. Drift correction of the applied revision
// skips the checks that it passed before.
func (r *Reconciler) observing(ctx context.Context, s *state) (observe.Request, error) {
	o, err := spec.Observing(s.Object, s.Keeping)
	if err != nil {
		return o, failure.Error{Reason: v1alpha1.ReasonPlanRefused, Stalled: true, Err: err}
	}
	o.Judge = r.renderer.JudgeUpgrade(s.Object.Namespace)
	o.Owner, o.Desired, o.Ranks, o.Hooks, o.HashKey = s.Owner, s.rendered.Issued.Complete(s.rendered.Desired, s.rendered.Wanted), s.rendered.Ranks, s.rendered.Hooks, s.HashKey
	o.Previous = r.watches.Adopt(s.Key(), s.listed.Inventory)
	o.CreateNamespace = o.CreateNamespace && !s.resolved.Unapproved
	if s.Keeping {
		return o, nil
	}
	if o.Lineage, err = r.lineage(ctx, s.Object, s.rendered.Desired); err != nil {
		return o, err
	}
	o.Requirements = spec.Requirements(s.rendered.Requires)
	names := namesOf(s.rendered.Requires)
	r.awaited.Set(s.Key(), names)
	if len(names) == 0 || o.RequirementsPolicy == plan.EnforcementNone {
		return o, nil
	}
	o.Packages, err = r.packages(ctx, s.Object, s.listed.Inventory.Target)
	return o, err
}

// preflight checks every permission that the plan needs. Drift correction of the applied
// revision skips it: there the API server reports missing permissions for each object.
func (r *Reconciler) preflight(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due || s.Keeping {
		return pipeline.Continue, nil
	}
	permissions, err := preflight.Check(ctx, s.resolved.Access.Client, *s.decided.Plan)
	if err != nil {
		return pipeline.Stop, err
	}
	s.decided.Warnings = append(s.decided.Warnings, permissions.Warnings...)
	if err := refused(permissions.Violations); err != nil {
		return pipeline.Stop, err
	}
	return pipeline.Continue, s.rendered.Issued.Unseen(s.decided.Plan)
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

// dryRun sends the writes of the plan to the API server as dry runs.
func (r *Reconciler) dryRun(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due {
		return pipeline.Continue, nil
	}
	check, err := r.tryPlan(ctx, s)
	if err != nil {
		return pipeline.Stop, err
	}
	s.decided.Plan.Recreates(check.Recreate)
	if len(check.Failed) > 0 && s.Keeping {
		s.leaveOutFailed(check.Failed)
		return pipeline.Continue, nil
	}
	if len(check.Failed) > 0 {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonDryRunFailed, Err: s.objectErrors(ctx, check.Failed)}
	}
	return pipeline.Continue, nil
}
