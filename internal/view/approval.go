// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// PendingDecision is the pending approval of a deployment, and the commands that decide about it. Its JSON form is part of the output
// of status -o json.
type PendingDecision struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Plan    string `json:"plan,omitempty"` // digest
	See     string `json:"see"`
	Approve string `json:"approve,omitempty"`
	Deny    string `json:"deny,omitempty"`
}

// pendingStates say in the column STATUS what is pending.
var pendingStates = map[string]string{
	v1alpha1.ReasonApprovalRequired: "a plan waits for approval",
	v1alpha1.ReasonApprovalDenied:   "a plan is denied",
	v1alpha1.ReasonPruneHeld:        "deletions wait for approval",
}

// pendingCondition is the condition about what is pending; nil for nothing.
func pendingCondition(o Object) *metav1.Condition {
	pending := apimeta.FindStatusCondition(o.GetConditions(), v1alpha1.ApprovalPendingCondition)
	if pending == nil || pending.Status != metav1.ConditionTrue {
		return nil
	}
	return pending
}

// pendingText is the state in words; empty where nothing is pending.
func pendingText(o Object) string {
	pending := pendingCondition(o)
	if pending == nil {
		return ""
	}
	if words := pendingStates[pending.Reason]; words != "" {
		return words
	}
	return "an approval is pending"
}

// PendingWord is what waits for a decision, in one word; empty for nothing.
func PendingWord(o Object) string {
	pending := pendingCondition(o)
	switch {
	case pending == nil:
		return ""
	case pending.Reason == v1alpha1.ReasonPruneHeld:
		return "prune"
	case pending.Reason == v1alpha1.ReasonApprovalDenied:
		return "denied"
	}
	return "approval"
}

// newPendingDecision says what is pending and which commands show, approve and deny it; nil for nothing.
func newPendingDecision(d *v1alpha1.BundleDeployment, program string) *PendingDecision {
	pending := pendingCondition(d)
	if pending == nil {
		return nil
	}
	found := &PendingDecision{Reason: pending.Reason, Message: pending.Message}
	if d.Status.Plan != nil {
		found.Plan = d.Status.Plan.Digest
	}
	command := func(verb string) string {
		text := fmt.Sprintf("%s %s %s -n %s", program, verb, ShellWord(d.Name), ShellWord(d.Namespace))
		if found.Plan != "" && verb != "plan" {
			text += " --plan " + ShellWord(found.Plan)
		}
		return text
	}
	found.See = command("plan")
	if pending.Reason != v1alpha1.ReasonApprovalDenied { // a denial takes precedence over approvals
		found.Approve = command("approve")
		found.Deny = found.Approve + " --deny"
	}
	return found
}

// PendingApproval is the condition by which a deployment waits for an approval; nil when it does not.
func PendingApproval(d *v1alpha1.BundleDeployment) *metav1.Condition {
	found := apimeta.FindStatusCondition(d.Status.Conditions, v1alpha1.ApprovalPendingCondition)
	if found == nil || found.Status != metav1.ConditionTrue || d.Status.Plan == nil || d.Status.Plan.Digest == "" {
		return nil
	}
	return found
}
