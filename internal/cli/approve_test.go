// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/act"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

var (
	planA = "sha256:" + strings.Repeat("a1", 32)
	planB = "sha256:" + strings.Repeat("b2", 32)
)

// awaiting makes a deployment wait for the approval of a plan.
func awaiting(reason, message string) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) {
		d.Status.Conditions = append(d.Status.Conditions, condition(v1alpha1.ApprovalPendingCondition, metav1.ConditionTrue, reason, message))
		d.Status.Plan = &v1alpha1.PlanStatus{Revision: revisionB, Digest: planA, Content: planB, Create: 1, Summary: "1 to create, 1 to delete"}
		d.Status.Applied.Revision = "v1.2.0@" + planB
	}
}

const asksFor = "the plan waits for an approval: 1 object would be deleted: ConfigMap demo/a.\nSee it with satchel plan podinfo"

func (c testCluster) approvals() []v1alpha1.BundleApproval {
	c.T.Helper()
	var list v1alpha1.BundleApprovalList
	if err := c.Client.List(c.T.Context(), &list, client.InNamespace(c.Namespace)); err != nil {
		c.T.Fatal(err)
	}
	return list.Items
}

func TestApprove(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment(awaiting(v1alpha1.ReasonApprovalRequired, asksFor)))
	c.Create(aDeployment(called("calm")))
	c.Want(c.Satchel("approve", "none"), kit.ExitError, `there is no BundleDeployment "none"`)
	c.Want(c.Satchel("approve", "source/podinfo"), kit.ExitError, "a source has no plan")
	c.Want(c.Satchel("approve", "calm"), kit.ExitNo, "BundleDeployment calm: no plan waits for an approval\n")
	c.Want(c.Satchel("approve", "podinfo", "--plan", planB), kit.ExitError, "the pending plan is "+planA+", not "+planB+": it changed since you reviewed it")
	c.Want(c.Satchel("approve", "podinfo"), kit.ExitError, "cannot ask for confirmation without a terminal: add --yes, or --plan "+planA)
	c.Want(c.Satchel("approve", "podinfo", "--dry-run"), kit.ExitOK, "Plan:       "+planA+"\n", "Content:    "+planB+"\n", "1 to create, 1 to delete", "ConfigMap demo/a", " (dry run)\n")
	if found := c.approvals(); len(found) > 0 {
		t.Fatalf("a dry run, or what was refused, created %v", found)
	}
	c.Want(c.Satchel("approve", "podinfo", "--plan", planA, "--reason", "tested", "--expires", "1h"), kit.ExitOK,
		"BundleApproval podinfo-a1a1a1a1a1a1: approves plan sha256:a1a1a1a1a1a1 of BundleDeployment podinfo\n")
	found := c.approvals()
	if len(found) != 1 || found[0].Spec.Plan != planA || found[0].Spec.Deployment != "podinfo" || found[0].Spec.Decision != v1alpha1.DecisionApprove || found[0].Spec.Reason != "tested" {
		t.Fatalf("created %+v", found)
	}
	if at := found[0].Spec.ExpirationTime; at == nil || !at.After(time.Now().Add(-time.Hour)) {
		t.Errorf("it expires at %v", at)
	}
	c.Want(c.Satchel("approve", "podinfo", "--yes"), kit.ExitOK, "BundleApproval podinfo-a1a1a1a1a1a1: says so already\n")

	used := found[0].DeepCopy()
	used.Status.ConsumedTime = new(metav1.Now())
	if err := c.Client.Status().Update(t.Context(), used); err != nil {
		t.Fatal(err)
	}
	c.Want(c.Satchel("approve", "podinfo", "--yes"), kit.ExitOK, "BundleApproval podinfo-a1a1a1a1a1a1-", ": approves plan")
	if found := c.approvals(); len(found) != 2 {
		t.Errorf("a used decision is not recreated: %+v", found)
	}
	c.Want(c.Satchel("status", "podinfo"), kit.ExitOK, "The plan sha256:a1a1a1a1a1a1 for revision v1.3.0", "is carried out when it is approved")
}

func TestDeny(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment(awaiting(v1alpha1.ReasonApprovalRequired, asksFor)))
	c.Create(aDeployment(called("denied"), awaiting(v1alpha1.ReasonApprovalDenied, "denied by bundleapproval x: no\nPropose another plan")))
	c.Want(c.Satchel("approve", "podinfo", "--deny", "--reason", "not on a Friday"), kit.ExitOK, "BundleApproval podinfo-deny-a1a1a1a1a1a1: denies plan sha256:a1a1a1a1a1a1 of BundleDeployment podinfo\n")
	if found := c.approvals(); len(found) != 1 || found[0].Spec.Decision != v1alpha1.DecisionDeny || found[0].Spec.Reason != "not on a Friday" {
		t.Errorf("created %+v", found)
	}
	c.Want(c.Satchel("approve", "denied"), kit.ExitError, "denied by bundleapproval x: no", "a denial takes precedence", "--field-selector spec.deployment=denied")
	c.Want(c.Satchel("approve", "denied", "--deny"), kit.ExitOK, "denies plan")
}

// The output of --export can be committed: it contains only the decision, and the API server accepts it.
func TestApproveExport(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment(awaiting(v1alpha1.ReasonPruneHeld, "9 of 12 objects would be deleted")))
	got := c.Satchel("approve", "podinfo", "--export", "--reason", "tested")
	c.Want(got, kit.ExitOK, "kind: BundleApproval\n")
	var approval v1alpha1.BundleApproval
	if err := yaml.UnmarshalStrict([]byte(got.Out), &approval); err != nil {
		t.Fatalf("%v in\n%s", err, got.Out)
	}
	if strings.Contains(got.Out, "status") || strings.Contains(got.Out, "creationTimestamp") || !strings.Contains(got.Err, "9 of 12 objects") {
		t.Errorf("printed\n%s\nand beside it\n%s", got.Out, got.Err)
	}
	if err := c.Client.Create(t.Context(), &approval); err != nil {
		t.Error(err)
	}
	c.Want(c.Satchel("approve", "podinfo", "--export", "--dry-run"), kit.ExitError, "export")
	c.Want(c.Satchel("approve", "podinfo", "--expires", "-1h"), kit.ExitError, "--expires takes a time from now on")
}

// The pending plan was made for another spec than the current one, so it cannot be approved by mistake.
func TestApproveWhatTheControllerHasNotSeen(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment(awaiting(v1alpha1.ReasonApprovalRequired, asksFor), func(d *v1alpha1.BundleDeployment) { d.Status.ObservedGeneration = 0 }))
	c.Want(c.Satchel("approve", "podinfo"), kit.ExitError, "the controller has not seen the latest change")
}

// Control characters in a status are escaped.
func TestApproveHostile(t *testing.T) {
	d := aDeployment(awaiting(v1alpha1.ReasonApprovalRequired, "a"+steering+"b"))
	d.Status.Plan.Summary, d.Status.Plan.Revision = "a"+steering, "b"+steering
	shown := act.WaitingPlan{Deployment: d, Condition: *view.PendingApproval(d)}.Print(printer.Style{})
	if hidden := hiddenIn(shown); hidden != "" {
		t.Error(hidden)
	}
}
