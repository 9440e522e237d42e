// SPDX-License-Identifier: Apache-2.0

package act

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/decision"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// WaitingPlan is a plan that waits for approval.
type WaitingPlan struct {
	Deployment *v1alpha1.BundleDeployment
	Condition  metav1.Condition
}

// waiting returns the pending plan. It fails if that is not the plan of --plan, or if the status is older than the last edit.
func waiting(a *kit.App, d *v1alpha1.BundleDeployment, o decision.Options) (WaitingPlan, error) {
	found := view.PendingApproval(d)
	switch {
	case d.Status.ObservedGeneration < d.Generation:
		return WaitingPlan{}, fmt.Errorf("the controller has not seen the latest change of the %s %q yet: try again in a moment, and check that it runs if that lasts", kit.Deployments.Name, d.Name)
	case found == nil:
		fmt.Fprintf(a.Streams.Out, "%s %s: no plan waits for an approval\n", kit.Deployments.Name, view.Inline(d.Name))
		return WaitingPlan{}, kit.ErrNo
	case o.Plan != "" && o.Plan != d.Status.Plan.Digest:
		return WaitingPlan{}, fmt.Errorf("the pending plan is %s, not %s: it changed since you reviewed it; see the pending plan with %s approve %s --dry-run",
			d.Status.Plan.Digest, o.Plan, a.Name, d.Name)
	}
	return WaitingPlan{Deployment: d, Condition: *found}, nil
}

// refuse refuses an approval that would have no effect.
func (w WaitingPlan) refuse(o decision.Options) error {
	if o.Decision() == v1alpha1.DecisionApprove && w.Condition.Reason == v1alpha1.ReasonApprovalDenied {
		return fmt.Errorf("this plan is denied, and a denial takes precedence: delete the BundleApproval that the message names first (kubectl get bundleapprovals -n %s --field-selector spec.deployment=%s)",
			w.Deployment.Namespace, w.Deployment.Name)
	}
	return nil
}

// Print shows the pending plan as the status has it, without the hint how to approve it.
func (w WaitingPlan) Print(s printer.Style) string {
	d, plan := w.Deployment, w.Deployment.Status.Plan
	var text strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%s %s\n", s.Paint(printer.Bold, fmt.Sprintf("%-11s", name+":")), value)
		}
	}
	line("Deployment", view.Inline(d.Namespace+"/"+d.Name))
	line("Plan", view.Inline(plan.Digest))
	line("Content", view.Inline(plan.Content))
	revision := view.ShortRevision(view.Inline(plan.Revision))
	if last := d.Status.Applied.Revision; last != "" && last != plan.Revision {
		revision += ", after " + view.ShortRevision(view.Inline(last))
	}
	line("Revision", revision)
	line("Changes", view.Inline(plan.Summary))
	message, _, _ := strings.Cut(w.Condition.Message, "\nSee it with ")
	if _, asks, found := strings.Cut(message, " waits for an approval: "); found { // which plan has been said
		message = asks
	}
	line("Pending", strings.ReplaceAll(strings.TrimSpace(view.Printable(message)), "\n", "\n"+strings.Repeat(" ", 12)))
	return text.String()
}
