// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/leftout"
)

// Plan compares the desired with the live objects, and makes the plan.
func (st *Stage) Plan(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if !in.Resolved.Due {
		return pipeline.Continue, nil
	}
	asked, err := st.observing(ctx, in)
	if err != nil {
		return pipeline.Stop, err
	}
	observed, err := observe.Cluster(ctx, in.Resolved.Access.Client, asked)
	if err != nil {
		return pipeline.Stop, err
	}
	observed.Facts.Offers = st.offers(ctx, in, observed)
	if !in.Keeping {
		observed.Withheld = leftout.Hold(in.Rendered.Bundle, in.Snapshot.Files(), observed.Previous)
	}
	made := plan.Make(observed)
	if in.Rendered.Unproven && !approval.LeavesContents(&made, in.Listed.Inventory()) {
		return pipeline.Stop, stage.AnotherContent(in.Object.Status.Applied.Revision)
	}
	if in.Resolved.BesideAttempt {
		made.LeaveOut(func(object plan.Object) bool { return in.writtenByAttempt(object) })
	}
	if err := st.consider(ctx, in, observed, &made); err != nil {
		return pipeline.Stop, err
	}
	if err := st.protectDependents(ctx, in, asked.RequirementsPolicy, &made); err != nil {
		return pipeline.Stop, err
	}
	st.wantOf(ctx, in, observed, &made)
	in.Decided.Observed = observed.Live
	if in.Resolved.LeavesDrift(in.Subject) {
		if in.Decided.Drift, err = stage.LeaveDrift(ctx, in.Resolved.Access.Client, in.Subject, &made); err != nil {
			return pipeline.Stop, err
		}
	}
	in.Decided.Plan = &made
	in.leaveOut(made.LeftOut)
	if !in.Keeping {
		st.awaitKinds(in, made)
	}
	if len(made.Violations) == 0 {
		return pipeline.Continue, in.Fits(in.Listed.Inventory(), &made)
	}
	lacking, err := preflight.Check(ctx, in.Resolved.Access.Client, made) // so that all problems are reported at once
	if err != nil {
		return pipeline.Stop, err
	}
	in.Decided.Warnings = append(in.Decided.Warnings, lacking.Warnings...)
	return pipeline.Stop, refused(violation.SortViolations(append(made.Violations, lacking.Violations...)))
}

// writtenByAttempt tells whether an object has other content than that of the applied revision, and is known to have it.
func (in *Input) writtenByAttempt(object plan.Object) bool {
	entry, listed := in.Listed.Inventory().Get(object.ID)
	return listed && entry.Confirmed() && !entry.Begun && entry.Rendered != object.Rendered
}

// observing collects the input of the plan. Drift correction of the applied revision
// skips the checks that it passed before.
func (st *Stage) observing(ctx context.Context, in *Input) (observe.Request, error) {
	o, err := spec.Observing(in.Object, in.Keeping)
	if err != nil {
		return o, failure.Error{Reason: v1alpha1.ReasonPlanRefused, Stalled: true, Err: err}
	}
	o.Judge = st.Judge(in.Object.Namespace)
	o.Owner, o.Desired, o.Ranks, o.Hooks, o.HashKey = in.Owner, in.Rendered.Issued.Complete(in.Rendered.Desired, in.Rendered.Wanted), in.Rendered.Ranks, in.Rendered.Hooks, in.HashKey
	if in.Resolved.BesideAttempt {
		listed := in.Listed.Inventory()
		o.Desired = slices.DeleteFunc(slices.Clone(o.Desired), func(d *unstructured.Unstructured) bool { return listed.Deleted(inventory.IDOf(d)) })
	}
	o.Previous = st.Watches.Adopt(in.Key(), in.Listed.Inventory())
	o.CreateNamespace = o.CreateNamespace && !in.Resolved.Unapproved
	if in.Keeping {
		return o, nil
	}
	o.Returning = spec.Returning(in.Object, in.Resolved.Revision())
	if o.Lineage, err = st.lineage(ctx, in.Object, in.Rendered.Desired); err != nil {
		return o, err
	}
	o.Requirements = spec.Requirements(in.Rendered.Requires)
	names := namesOf(o.Requirements)
	st.Awaited.Set(in.Key(), names)
	if len(names) == 0 || o.RequirementsPolicy == plan.EnforcementNone {
		return o, nil
	}
	o.Packages, err = st.packages(ctx, in.Object, in.Listed.Current().Target(), names)
	return o, err
}

// awaitKinds waits for the kinds of the objects that were skipped.
func (st *Stage) awaitKinds(in *Input, made plan.Plan) {
	var kinds []schema.GroupKind
	seen := map[schema.GroupKind]bool{}
	for _, id := range made.Skipped {
		if !seen[id.GroupKind()] {
			seen[id.GroupKind()] = true
			kinds = append(kinds, id.GroupKind())
		}
	}
	st.Kinds.Set(in.Key(), in.Resolved.Access.Client.Kinds(), kinds)
}

// leaveOut excludes objects with violations from drift correction. If one is the Secret
// of a certificate, or such a Secret could not be read, all objects that hold or trust
// certificates are excluded.
func (in *Input) leaveOut(violations []violation.Violation) {
	if !in.Keeping {
		return
	}
	secret := false
	for _, violation := range violations {
		in.Decided.LeftOut = append(in.Decided.LeftOut, violation.String())
		secret = secret || in.Rendered.Issued.Secret(violation.Object) != nil
	}
	if in.Rendered.Issued == nil || !secret && in.Rendered.Issued.Unseen(in.Decided.Plan) == nil {
		return
	}
	in.Decided.Plan.LeaveOut(func(o plan.Object) bool {
		return in.Rendered.Issued.Secret(o.ID) != nil || in.Rendered.Trusts(o.Desired)
	})
}
