// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// planDigest is the digest of a plan that consists of one digit.
func planDigest(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

// collecting is a deployment that a driver leads, with a plan that was executed and one that is pending.
type collecting struct {
	*driver
	t *testing.T
}

const (
	executedPlan  = "1"
	planBefore    = "2"
	pendingPlan   = "3"
	planInHistory = "4"
	anotherPlan   = "5"
)

func collectingFrom(t *testing.T) collecting {
	t.Helper()
	r := newRig(t)
	key := r.deploy(t, r.namespace(t), "app", func(d *v1alpha1.BundleDeployment) {
		d.Labels = map[string]string{driven: "yes"}
		d.Spec.Suspend = true
	})
	c := collecting{r.drive(t, key, nil), t}
	d := c.deployment(t)
	before := d.DeepCopy()
	later := metav1.NewTime(time.Now().Add(time.Minute).Truncate(time.Second))
	d.Status.Plan = &v1alpha1.PlanStatus{Digest: planDigest(pendingPlan)}
	d.Status.Internal.Executed = &v1alpha1.ExecutedPlan{
		Plan: planDigest(executedPlan), Base: planDigest(planBefore), Approval: "named", StartTime: later, ServiceAccountName: "installer",
	}
	d.Status.History = []v1alpha1.RevisionRecord{{Revision: "v1", Plan: planDigest(planInHistory), Outcome: v1alpha1.OutcomeHealthy, StartTime: later}}
	c.Prove(d)
	if err := r.admin.Status().Patch(t.Context(), d, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	return c
}

// decided is a BundleApproval of the test.
type decided struct {
	name, plan, manager string
	deployment          string // app if empty
	deny                bool
	used                bool
	expires             time.Duration
	labelled            bool // by another field manager, after it was created
}

func (c collecting) decide(one decided) {
	c.t.Helper()
	a := &v1alpha1.BundleApproval{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: one.name}}
	a.Spec = v1alpha1.BundleApprovalSpec{Deployment: "app", Plan: planDigest(one.plan), Decision: v1alpha1.DecisionApprove}
	if one.deployment != "" {
		a.Spec.Deployment = one.deployment
	}
	if one.deny {
		a.Spec.Decision = v1alpha1.DecisionDeny
	}
	if one.expires != 0 {
		a.Spec.ExpirationTime = new(metav1.NewTime(time.Now().Add(one.expires)))
	}
	if err := c.r.admin.Create(c.t.Context(), a, client.FieldOwner(one.manager)); err != nil {
		c.t.Fatal(err)
	}
	if one.used {
		before := a.DeepCopy()
		a.Status.ConsumedTime = new(metav1.Now())
		if err := c.r.admin.Status().Patch(c.t.Context(), a, client.MergeFrom(before), client.FieldOwner(deployment.FieldManager)); err != nil {
			c.t.Fatal(err)
		}
	}
	if one.labelled {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
		if err := c.r.admin.Patch(c.t.Context(), a, patch, client.FieldOwner("kubectl-label")); err != nil {
			c.t.Fatal(err)
		}
	}
}

// names are the BundleApprovals that exist.
func (c collecting) names() map[string]bool {
	c.t.Helper()
	var all v1alpha1.BundleApprovalList
	if err := c.r.admin.List(c.t.Context(), &all, client.InNamespace(c.key.Namespace)); err != nil {
		c.t.Fatal(err)
	}
	found := map[string]bool{}
	for _, one := range all.Items {
		found[one.Name] = true
	}
	return found
}

// TestApprovalsAreCollected deletes approvals that have ended, and can do no harm if they are created again.
func TestApprovalsAreCollected(t *testing.T) {
	t.Parallel()
	c := collectingFrom(t)
	const cli, git, hour = v1alpha1.CommandFieldManager, "kustomize-controller", time.Hour
	kept := map[string]bool{}
	for _, tc := range []struct {
		reason string
		decided
		deleted bool
	}{
		{"used long ago", decided{name: "used", plan: anotherPlan, manager: cli, used: true}, true},
		{"used, and its deployment is gone", decided{name: "used-gone", plan: anotherPlan, manager: cli, used: true, deployment: "gone"}, true},
		{"expired long ago", decided{name: "expired", plan: anotherPlan, manager: cli, expires: hour}, true},
		{"expired: created again, it decides nothing", decided{name: "expired-git", plan: anotherPlan, manager: git, expires: hour}, true},
		{"created again by Git after it had expired: kept for another retention", decided{name: "expired-again", plan: anotherPlan, manager: git, expires: -50 * hour}, true},
		{"used and expired", decided{name: "used-expired-git", plan: anotherPlan, manager: git, used: true, expires: hour}, true},
		{"another plan was executed since", decided{name: "denied", plan: anotherPlan, manager: cli, deny: true}, true},

		{"Git would create it again, unused", decided{name: "used-git", plan: anotherPlan, manager: git, used: true}, false},
		{"another client has changed it", decided{name: "used-labelled", plan: anotherPlan, manager: cli, used: true, labelled: true}, false},
		{"Git would deny it again", decided{name: "denied-git", plan: anotherPlan, manager: git, deny: true}, false},
		{"it may still be used", decided{name: "unused", plan: "6", manager: cli}, false},
		{"it expires later", decided{name: "expires-late", plan: "6", manager: cli, expires: 10_000 * hour}, false},
		{"the pending plan", decided{name: "pending", plan: pendingPlan, manager: cli, deny: true}, false},
		{"the pending plan, which was used", decided{name: "pending-used", plan: pendingPlan, manager: cli, used: true}, false},
		{"the executed plan", decided{name: "executed", plan: executedPlan, manager: cli, used: true}, false},
		{"the record names it", decided{name: "named", plan: "7", manager: cli, used: true}, false},
		{"the plan before the executed one", decided{name: "before", plan: planBefore, manager: cli, used: true}, false},
		{"a plan of the history", decided{name: "history", plan: planInHistory, manager: cli, used: true}, false},
		{"an approval of that plan would become valid", decided{name: "denied-approved", plan: "6", manager: cli, deny: true}, false},
		{"no plan was executed since", decided{name: "denied-gone", plan: anotherPlan, manager: cli, deny: true, deployment: "gone"}, false},
	} {
		c.decide(tc.decided)
		if !tc.deleted {
			kept[tc.name] = true
		}
	}
	collector := c.Collector(100 * time.Hour)
	all := c.names()
	c.now = time.Now().Add(90 * time.Hour)
	if err := collector.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, c.names()); diff != "" {
		t.Errorf("before the retention (-want +got):\n%s", diff)
	}
	c.now = time.Now().Add(200 * time.Hour)
	if err := collector.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept, c.names()); diff != "" {
		t.Errorf("after the retention (-want +got):\n%s", diff)
	}

	mark := c.r.mark(t)
	if err := collector.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, e := range c.r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return e.Resource == "bundleapprovals" && e.Namespace == c.key.Namespace && e.Verb != "list"
	}) {
		t.Errorf("a collection of nothing sends %s %s", e.Verb, e.Name)
	}
}

// TestDenialsAreKept: a denial holds until a plan was executed after it, which only a proven record shows.
func TestDenialsAreKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		executed time.Duration // from now
		forged   bool
		kept     bool
	}{
		"executed after":  {"the denied plan does not come back", time.Minute, false, false},
		"executed before": {"the denied plan may still be proposed", -time.Hour, false, true},
		"forged":          {"a status without proof shows nothing", time.Minute, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := collectingFrom(t)
			d := c.deployment(t)
			before := d.DeepCopy()
			d.Status.Internal.Executed.StartTime = metav1.NewTime(time.Now().Add(tc.executed).Truncate(time.Second))
			if d.Status.Internal.Executed.Key = "changed"; !tc.forged {
				c.Prove(d)
			}
			if err := c.r.admin.Status().Patch(t.Context(), d, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			c.decide(decided{name: "denied", plan: anotherPlan, manager: v1alpha1.CommandFieldManager, deny: true})
			c.now = time.Now().Add(200 * time.Hour)
			if err := c.Collector(100 * time.Hour).Collect(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.names()["denied"] != tc.kept {
				t.Errorf("%s: kept %v, want %v", tc.reason, !tc.kept, tc.kept)
			}
		})
	}
}
