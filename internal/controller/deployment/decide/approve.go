// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/spec/planning"
)

// consider finds out what is known about the approval of a plan. What an approved plan holds is planned as well.
func (st *Stage) consider(ctx context.Context, in *Input, made *planning.Made) (err error) {
	if in.Keeping {
		return nil
	}
	in.Decided.ApprovalState, err = st.Approvals.Consider(ctx, approval.Question{
		Object: in.Object, PlanDigests: in.Rendered.PlanDigests, Listed: in.Listed.Inventory(), Artifact: in.Resolved.Attempt(in.Subject).Digest, Hooks: in.Rendered.Hooks, Grounds: in.grounds, Reach: in.Resolved.Reach(in.Subject),
		Rejected: in.Resolved.Rejected != nil, Now: in.Now,
	}, &made.Plan)
	if err != nil || !in.Decided.ApprovalState.Lifts(&made.Plan) {
		return err
	}
	return made.LiftHold(ctx)
}

// Server stops before anything but the identity of the cluster is asked of a server that waits for an approval.
func (st *Stage) Server(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	c, err := st.Approvals.Server(ctx, in.Object, in.Listed.Current().Target(), in.Resolved.Reach(in.Subject), in.Now)
	if c == nil || err != nil {
		return pipeline.Continue, err
	}
	in.Decided.ApprovalState = c
	return pipeline.Stop, c.Pending(in.Object, in.Object.Status.Applied.Revision)
}

// Approve stops a plan that waits for an approval.
func (st *Stage) Approve(_ context.Context, in *Input) (pipeline.Outcome, error) {
	if !in.Resolved.Due || in.Keeping {
		return pipeline.Continue, nil
	}
	c := in.Decided.ApprovalState
	waits, err := st.Approvals.Waits(c, approval.Proposal{
		Object: in.Object, Plan: in.Decided.Plan, Hooks: in.Rendered.Hooks, Listed: in.Listed.Inventory(), Head: in.Resolved.Head(), Further: in.furtherEscalations(), Bare: func(objects []plan.Object) ([]*unstructured.Unstructured, error) {
			return in.Rendered.Bare(in.Subject, objects)
		},
	})
	if !waits || err != nil {
		return pipeline.Continue, err
	}
	in.Decided.Accepted = true
	return pipeline.Stop, c.Pending(in.Object, in.Resolved.Revision())
}

// furtherEscalations are those of spec.catalog.
func (in *Input) furtherEscalations() []string {
	if in.Resolved.Catalog == nil || in.Resolved.Rejected != nil {
		return nil
	}
	return in.Resolved.Catalog.Escalations
}

// grounds is the digest of what users of the namespace control of a plan: the spec without its intervals,
// the spec of the source, the contents of the inputs, and where the kubeconfig leads.
func (in *Input) grounds() string {
	if in.Resolved.Source == nil || in.Resolved.Source.Grounds == "" {
		return ""
	}
	spec := in.Object.Spec.DeepCopy()
	spec.Suspend, spec.Source = false, nil
	spec.Interval, spec.RetryInterval = v1alpha1.Duration{}, v1alpha1.Duration{}
	return stage.DigestOfAll(format.Plan.Purpose("grounds"), spec, in.Resolved.Source.Grounds, in.Resolved.Inputs.Digest, in.Resolved.Reach(in.Subject))
}
