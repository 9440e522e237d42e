// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// demand is the approval that the spec and the namespace of a deployment require for a plan.
type demand struct {
	// mode that applies: that of the spec, or a stricter one.
	mode v1alpha1.ApprovalMode
	// because says why every plan needs an approval; empty if not every plan does.
	because []string
	// grounds is the digest of what the plan is made of; empty if unknown.
	grounds string
}

// demandOn decides which mode applies. In a namespace that requires approval it does not rely on the
// admission policy, which may not be, or not have been, installed:
//
//	the namespace requires nothing          the mode of the spec
//	Manual                                 Manual
//	nothing was approved yet               OnEscalation, and the plan waits in any case
//	OnEscalation                           OnEscalation
//	Automatic, as it was approved          Automatic
//	Automatic                              OnEscalation, and the plan waits in any case
func (a Approvals) demandOn(ctx context.Context, object *v1alpha1.BundleDeployment, grounds func() string, record *v1alpha1.ExecutedPlan) (demand, error) {
	d := demand{mode: effective.ApprovalMode(&object.Spec), grounds: grounds()}
	required, err := a.Labels.Required(ctx, a.Live, object.Namespace)
	if err != nil || !required.Approval || d.mode == v1alpha1.ApprovalManual {
		return d, err
	}
	label := v1alpha1.RequireApprovalLabel + "=" + v1alpha1.RequireApproval
	switch automatic := d.mode == v1alpha1.ApprovalAutomatic; {
	case record == nil:
		d.because = []string{"no plan of this BundleDeployment was approved yet, and its namespace has the label " + label}
	case automatic && (d.grounds == "" || record.Grounds != d.grounds):
		d.because = []string{"the mode Automatic was not approved for the current spec, source and inputs, and the namespace has the label " + label}
	case automatic:
		return d, nil
	}
	d.mode = v1alpha1.ApprovalOnEscalation
	return d, nil
}
