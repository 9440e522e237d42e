// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec/leftout"
	"github.com/satchel-dev/satchel/internal/spec/planning"
)

// Plan compares the desired with the live objects, and makes the plan.
func (st *Stage) Plan(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if !in.Resolved.Due {
		return pipeline.Continue, nil
	}
	if !in.Keeping {
		st.Awaited.Set(in.Key(), in.bundle().RequiredPackages())
	}
	made, err := planning.Make(ctx, in.Resolved.Access.Client, st.request(in))
	if err != nil {
		return pipeline.Stop, stage.Unplannable(err)
	}
	if in.Rendered.Unproven && !approval.LeavesContents(&made.Plan, in.Listed.Inventory()) {
		return pipeline.Stop, stage.AnotherContent(in.Object.Status.Applied.Revision)
	}
	if in.Resolved.BesideAttempt {
		made.Plan.LeaveOut(func(object plan.Object) bool { return in.writtenByAttempt(object) })
	}
	if err := st.consider(ctx, in, made); err != nil {
		return pipeline.Stop, err
	}
	planned := made.Plan // alone, since what it was made from is released before it is carried out
	if !in.Keeping {
		st.Blocked.Set(in.Key(), made.Refusing)
		st.wantOf(ctx, in, made.Observed, &planned)
	}
	in.Decided.Observed = made.Observed.Live
	if in.Resolved.LeavesDrift(in.Subject) {
		if in.Decided.Drift, err = stage.LeaveDrift(ctx, in.Resolved.Access.Client, in.Subject, &planned); err != nil {
			return pipeline.Stop, err
		}
	}
	in.Decided.Plan = &planned
	in.leaveOut(planned.LeftOut)
	if !in.Keeping {
		st.awaitKinds(in, planned)
	}
	return st.refuse(ctx, in, made)
}

// refuse stops a plan with violations. Missing permissions are listed with them, so that all problems are reported at once.
func (st *Stage) refuse(ctx context.Context, in *Input, made *planning.Made) (pipeline.Outcome, error) {
	if made.TooLarge != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonPlanRefused, Stalled: true, Err: made.TooLarge}
	}
	if len(made.Plan.Violations) == 0 {
		return pipeline.Continue, nil
	}
	lacking, err := preflight.Check(ctx, in.Resolved.Access.Client, made.Plan)
	if err != nil {
		return pipeline.Stop, err
	}
	in.Decided.Warnings = append(in.Decided.Warnings, lacking.Warnings...)
	return pipeline.Stop, refused(violation.SortViolations(append(made.Plan.Violations, lacking.Violations...)))
}

// writtenByAttempt tells whether an object has other content than that of the applied revision, and is known to have it.
func (in *Input) writtenByAttempt(object plan.Object) bool {
	entry, listed := in.Listed.Inventory().Get(object.ID)
	return listed && entry.Confirmed() && !entry.Begun && entry.Rendered != object.Rendered
}

// request is what the plan is made of.
func (st *Stage) request(in *Input) planning.Request {
	return planning.Request{
		Deployment: in.Object, Owner: in.Owner, Previous: st.Watches.Adopt(in.Key(), in.Listed.Inventory()),
		Revision: in.Resolved.Revision(), Bundle: in.bundle(), HashKey: in.HashKey, Judge: st.Judge(in.Object.Namespace),
		Keeping: in.Keeping, WithoutNamespace: in.Resolved.Unapproved, Room: in.Room,
		Neighbours: neighbours{reader: st.Reader, namespace: in.Object.Namespace, offers: st.Offers},
	}
}

// bundle is the converted revision, with the certificates that were issued for it.
func (in *Input) bundle() planning.Bundle {
	objects := in.Rendered.Issued.Complete(in.Rendered.Desired, in.Rendered.Wanted)
	if in.Resolved.BesideAttempt {
		listed := in.Listed.Inventory()
		objects = slices.DeleteFunc(slices.Clone(objects), func(d *unstructured.Unstructured) bool { return listed.Deleted(inventory.IDOf(d)) })
	}
	return planning.Bundle{
		Objects: objects, Hooks: in.Rendered.Hooks, Ranks: in.Rendered.Ranks, Requires: in.Rendered.Requires, Package: in.Rendered.Contains,
		Files: in.Rendered.Bundle, Applied: func(context.Context) leftout.Applied { return in.Snapshot.Files() },
	}
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
