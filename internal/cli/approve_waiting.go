// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// waitingPlan is a plan that waits for approval.
type waitingPlan struct {
	deployment *v1alpha1.BundleDeployment
	condition  metav1.Condition
}

// pendingApproval is the condition by which a deployment waits for an approval; nil when it does not.
func pendingApproval(d *v1alpha1.BundleDeployment) *metav1.Condition {
	found := apimeta.FindStatusCondition(d.Status.Conditions, v1alpha1.ApprovalPendingCondition)
	if found == nil || found.Status != metav1.ConditionTrue || d.Status.Plan == nil || d.Status.Plan.Digest == "" {
		return nil
	}
	return found
}

// waiting returns the pending plan. It fails if that is not the plan of --plan, or if the status is older than the last edit.
func (a *app) waiting(d *v1alpha1.BundleDeployment, o deciding) (waitingPlan, error) {
	found := pendingApproval(d)
	switch {
	case d.Status.ObservedGeneration < d.Generation:
		return waitingPlan{}, fmt.Errorf("the controller has not seen the latest change of the %s %q yet: try again in a moment, and check that it runs if that lasts", deployments.name, d.Name)
	case found == nil:
		fmt.Fprintf(a.streams.Out, "%s %s: no plan waits for an approval\n", deployments.name, inline(d.Name))
		return waitingPlan{}, errNo
	case o.plan != "" && o.plan != d.Status.Plan.Digest:
		return waitingPlan{}, fmt.Errorf("the pending plan is %s, not %s: it changed since you reviewed it; see the pending plan with %s %s %s --dry-run",
			d.Status.Plan.Digest, o.plan, a.name, strings.ToLower(string(o.decision)), d.Name)
	}
	return waitingPlan{deployment: d, condition: *found}, nil
}

// refuse refuses an approval that would have no effect.
func (w waitingPlan) refuse(o deciding) error {
	if o.decision == v1alpha1.DecisionApprove && w.condition.Reason == v1alpha1.ReasonApprovalDenied {
		return fmt.Errorf("this plan is denied, and a denial takes precedence: delete the BundleApproval that the message names first (kubectl get bundleapprovals -n %s --field-selector spec.deployment=%s)",
			w.deployment.Namespace, w.deployment.Name)
	}
	return nil
}

// print shows the pending plan as the status has it, without the hint how to approve it.
func (w waitingPlan) print(s style) string {
	d, plan := w.deployment, w.deployment.Status.Plan
	var text strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%s %s\n", s.paint(bold, fmt.Sprintf("%-11s", name+":")), value)
		}
	}
	line("Deployment", inline(d.Namespace+"/"+d.Name))
	line("Plan", inline(plan.Digest))
	line("Content", inline(plan.Content))
	revision := shortRevision(inline(plan.Revision))
	if last := d.Status.LastAppliedRevision; last != "" && last != plan.Revision {
		revision += ", after " + shortRevision(inline(last))
	}
	line("Revision", revision)
	line("Changes", inline(plan.Summary))
	message, _, _ := strings.Cut(w.condition.Message, "\nSee it with ")
	if _, asks, found := strings.Cut(message, " waits for an approval: "); found { // which plan has been said
		message = asks
	}
	line("Pending", strings.ReplaceAll(strings.TrimSpace(printable(message)), "\n", "\n"+strings.Repeat(" ", 12)))
	return text.String()
}
