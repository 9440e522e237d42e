// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

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
	if !s.resolved.due {
		return pipeline.Continue, nil
	}
	asked, err := r.observing(ctx, s)
	if err != nil {
		return pipeline.Stop, err
	}
	observed, err := observe.Cluster(ctx, s.resolved.access.Client, asked)
	if err != nil {
		return pipeline.Stop, err
	}
	made := plan.Make(observed)
	if err := r.consider(ctx, s, observed, &made); err != nil {
		return pipeline.Stop, err
	}
	s.decided.observed = observed.Live
	if s.leavesDrift() {
		if err := r.leave(ctx, s, &made); err != nil {
			return pipeline.Stop, err
		}
	}
	s.decided.plan = &made
	s.leaveOut(made.LeftOut)
	if !s.keeping {
		r.awaitKinds(s, made)
	}
	if len(made.Violations) == 0 {
		return pipeline.Continue, s.fits(made.Inventory)
	}
	lacking, err := preflight.Check(ctx, s.resolved.access.Client, made) // so that all problems are reported at once
	if err != nil {
		return pipeline.Stop, err
	}
	s.warnings = append(s.warnings, lacking.Warnings...)
	return pipeline.Stop, refused(violation.SortViolations(append(made.Violations, lacking.Violations...)))
}

// observing collects the input of the plan. Drift correction of the applied revision
// skips the checks that it passed before.
func (r *Reconciler) observing(ctx context.Context, s *state) (observe.Request, error) {
	o, err := spec.Observing(s.object, s.keeping)
	if err != nil {
		return o, failure.Error{Reason: v1alpha1.ReasonPlanRefused, Stalled: true, Err: err}
	}
	o.Judge = r.renderer.JudgeUpgrade(s.object.Namespace)
	o.Owner, o.Desired, o.Ranks, o.Hooks, o.HashKey = s.owner, s.rendered.issued.Complete(s.rendered.desired, s.rendered.wanted), s.rendered.ranks, s.rendered.hooks, s.hashKey
	o.Previous = r.watches.Adopt(client.ObjectKeyFromObject(s.object), s.listed.inventory)
	o.CreateNamespace = o.CreateNamespace && !s.resolved.unapproved
	if s.keeping {
		return o, nil
	}
	if o.Lineage, err = r.lineage(ctx, s.object, s.rendered.desired); err != nil {
		return o, err
	}
	o.Requirements = spec.Requirements(s.rendered.requires)
	names := namesOf(s.rendered.requires)
	r.awaited.Set(client.ObjectKeyFromObject(s.object), names)
	if len(names) == 0 || o.RequirementsPolicy == plan.EnforcementNone {
		return o, nil
	}
	o.Packages, err = r.packages(ctx, s.object, s.listed.inventory.Target)
	return o, err
}

// preflight checks every permission that the plan needs. Drift correction of the applied
// revision skips it: there the API server reports missing permissions for each object.
func (r *Reconciler) preflight(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.due || s.keeping {
		return pipeline.Continue, nil
	}
	permissions, err := preflight.Check(ctx, s.resolved.access.Client, *s.decided.plan)
	if err != nil {
		return pipeline.Stop, err
	}
	s.warnings = append(s.warnings, permissions.Warnings...)
	if err := refused(permissions.Violations); err != nil {
		return pipeline.Stop, err
	}
	return pipeline.Continue, s.rendered.issued.Unseen(s.decided.plan)
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
	if !s.resolved.due {
		return pipeline.Continue, nil
	}
	check, err := r.tryPlan(ctx, s)
	if err != nil {
		return pipeline.Stop, err
	}
	s.decided.plan.Recreates(check.Recreate)
	if len(check.Failed) > 0 && s.keeping {
		s.leaveOutFailed(check.Failed)
		return pipeline.Continue, nil
	}
	if len(check.Failed) > 0 {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonDryRunFailed, Err: s.objectErrors(ctx, check.Failed)}
	}
	return pipeline.Continue, nil
}
