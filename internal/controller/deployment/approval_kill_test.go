// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// left makes the running controller leave a deployment to a driver.
func left(d *v1alpha1.BundleDeployment) { d.Labels = map[string]string{driven: "true"} }

// waits reconciles until a plan for a revision waits for an approval, and returns its digest.
func (d *driver) waits(t *testing.T, revision string) string {
	t.Helper()
	for range 20 {
		d.reconcile(t)
		found := d.deployment(t)
		if conditions.GetReason(found, v1alpha1.ApprovalPendingCondition) == v1alpha1.ReasonApprovalRequired && found.Status.Plan.Revision == revision {
			return found.Status.Plan.Digest
		}
	}
	t.Fatalf("nothing waits for an approval:\n%s", describe(d.deployment(t)))
	return ""
}

// A controller that is killed after any write of an approved plan continues the plan after
// its restart without a second approval; the approval is consumed, and the approved
// deletions are done.
func TestKilledWithAnApprovedPlan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	for kills := 0; ; kills += betweenKills() {
		name := fmt.Sprint("app-", kills)
		first := r.publish(t, namespace, name, "v1", fstest.MapFS{"a.yaml": configMap("a-"+name, "one"), "b.yaml": configMap("b-"+name, "one")})
		key := r.deploy(t, namespace, name, both(asking(v1alpha1.ApprovalManual), left))
		s := r.drive(t, key, nil)
		r.decide(t, key, s.waits(t, first.Revision))
		s.ready(t)
		second := r.publish(t, namespace, name, "v2", fstest.MapFS{"a.yaml": configMap("a-"+name, "two"), "c.yaml": configMap("c-"+name, "two")})
		approval := r.decide(t, key, s.waits(t, second.Revision))
		death := &dying{left: kills + 1}
		s = s.again(t, death.wrap)
		for range 3 {
			_, _ = s.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		}
		s = s.again(t, nil)
		for range 10 {
			s.reconcile(t)
		}
		d := s.deployment(t)
		if conditions.Has(d, v1alpha1.ApprovalPendingCondition) || d.Status.Healthy.Revision != second.Revision || d.Status.Internal.Executed.Approval != approval.Name {
			t.Errorf("killed after write %d:\n%s", kills+1, describe(d))
		}
		if r.value(t, t.Context(), namespace, "a-"+name) != "two" || r.value(t, t.Context(), namespace, "c-"+name) != "two" || r.get(t, aConfigMap(namespace, "b-"+name)) {
			t.Errorf("killed after write %d, the objects are not those of the approved revision", kills+1)
		}
		r.consumed(t, approval)
		r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Labels = nil }) // the running controller removes it
		if !death.dead {
			if kills < 4 {
				t.Errorf("%d kills, want one at each of the status, the approval and two objects at least", kills)
			}
			return
		}
	}
}

// beforeWriteTo runs something just before the first request that changes what a path contains.
func beforeWriteTo(path string, do func()) transport.WrapperFunc {
	var once sync.Once
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			if changes(request) && strings.Contains(request.URL.Path, path) {
				once.Do(do)
			}
			return next.RoundTrip(request)
		})
	}
}

// The approval is withdrawn, or the spec is edited, just when the plan is begun: nothing
// is written, and the plan waits for approval again.
func TestApprovalWithdrawnAtTheLastMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	for name, tc := range map[string]struct {
		reason, path string
		do           func(client.ObjectKey, *v1alpha1.BundleApproval)
	}{
		"withdrawn": {"what was recorded is taken back", "/bundleapprovals/", func(_ client.ObjectKey, a *v1alpha1.BundleApproval) { r.delete(t, a) }},
		"used": {"an approval is good for one plan", "/bundleapprovals/", func(_ client.ObjectKey, a *v1alpha1.BundleApproval) {
			before := a.DeepCopy()
			a.Status.ConsumedTime = new(metav1.Now())
			if err := r.admin.Status().Patch(t.Context(), a, client.MergeFrom(before)); err != nil {
				t.Error(err)
			}
		}},
		"edited": {"the status cannot be stored under another spec", "/bundledeployments/", func(key client.ObjectKey, _ *v1alpha1.BundleApproval) {
			r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Apply.CollisionProtection = v1alpha1.CollisionNone })
		}},
	} {
		first := r.publish(t, namespace, name, "v1", fstest.MapFS{"a.yaml": configMap(name, "one"), "b.yaml": configMap("b-"+name, "one")})
		key := r.deploy(t, namespace, name, both(asking(v1alpha1.ApprovalManual), left))
		s := r.drive(t, key, nil)
		r.decide(t, key, s.waits(t, first.Revision))
		s.ready(t)
		was := s.deployment(t).Status
		second := r.publish(t, namespace, name, "v2", fstest.MapFS{"a.yaml": configMap(name, "two")})
		approval := r.decide(t, key, s.waits(t, second.Revision))
		s = s.again(t, beforeWriteTo(tc.path, func() { tc.do(key, approval) }))
		s.reconcile(t)
		s = s.again(t, nil)
		s.waits(t, second.Revision)
		d := s.deployment(t)
		if value := r.value(t, t.Context(), namespace, name); value != "one" || !r.get(t, aConfigMap(namespace, "b-"+name)) {
			t.Errorf("%s: %s: written all the same: %s", name, tc.reason, value)
		}
		if d.Status.Internal.Executed.Plan != was.Internal.Executed.Plan || fmt.Sprint(d.Status.Inventory.Entries) != fmt.Sprint(was.Inventory.Entries) {
			t.Errorf("%s: %s: %+v and %v, want them as before: %+v and %v", name, tc.reason, d.Status.Internal.Executed, d.Status.Inventory.Entries, was.Internal.Executed, was.Inventory.Entries)
		}
		r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Labels = nil })
	}
}

// Remediation rolls back to an approved revision without another approval; a retry of the
// failed revision needs one.
func TestApprovalAndRollback(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", good("one"))
	key := r.deploy(t, namespace, "app", both(quick, both(rollsBack(0, 4*time.Second), asking(v1alpha1.ApprovalManual))))
	_, digest := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
	r.decide(t, key, digest)
	r.ready(t, key, first.Revision)
	second := r.publish(t, namespace, "app", "v2", sickly("two"))
	_, failing := r.awaits(t, key, second.Revision, v1alpha1.ReasonApprovalRequired)
	r.decide(t, key, failing)
	d := r.unready(t, key, v1alpha1.ReasonRevisionRejected)
	if r.value(t, t.Context(), namespace, "a") != "one" || conditions.Has(d, v1alpha1.ApprovalPendingCondition) {
		t.Errorf("the last healthy revision is not back:\n%s", describe(d))
	}
	r.handled(t, key) // has the rejected one tried again
	if _, again := r.awaits(t, key, second.Revision, v1alpha1.ReasonApprovalRequired); again == failing {
		t.Error("the rejected plan has the digest of the plan that was approved before")
	}
}

// Users who may edit and delete a deployment can destroy no more than was approved:
// what was approved to be kept stays, whatever the spec says when the deployment is
// deleted.
func TestApprovalOfWhatARemovalDestroys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	for name, tc := range map[string]struct {
		reason   string
		approved v1alpha1.DeletionPolicy
		edited   v1alpha1.DeletionPolicy
		stays    bool
	}{
		"kept":    {"it was approved to stay", v1alpha1.DeletionOrphan, v1alpha1.DeletionDelete, true},
		"careful": {"to keep it takes no approval", v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan, true},
		"gone":    {"it was approved to go", v1alpha1.DeletionDelete, v1alpha1.DeletionDelete, false},
	} {
		first := r.publish(t, namespace, name, "v1", fstest.MapFS{"a.yaml": configMap(name, "one")})
		key := r.deploy(t, namespace, name, both(asking(v1alpha1.ApprovalManual), func(d *v1alpha1.BundleDeployment) { d.Spec.DeletionPolicy = tc.approved }))
		_, digest := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
		r.decide(t, key, digest)
		r.ready(t, key, first.Revision)
		r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.DeletionPolicy = tc.edited })
		r.remove(t, key)
		if r.get(t, aConfigMap(namespace, name)) != tc.stays {
			t.Errorf("%s: %s; it is there: %v", name, tc.reason, !tc.stays)
		}
	}
}
