// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/tests/installation"
)

// decide creates a BundleApproval.
func (r *rig) decide(approval, plan string, change ...func(*v1alpha1.BundleApprovalSpec)) {
	r.t.Helper()
	object := &v1alpha1.BundleApproval{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: approval}}
	object.Spec = v1alpha1.BundleApprovalSpec{Rollout: name, Plan: plan, Decision: v1alpha1.DecisionApprove}
	for _, change := range change {
		change(&object.Spec)
	}
	if err := shared.admin.Create(r.t.Context(), object); err != nil {
		r.t.Fatal(err)
	}
}

// withdraw deletes a BundleApproval.
func (r *rig) withdraw(approval string) {
	r.t.Helper()
	if err := shared.admin.Delete(r.t.Context(), &v1alpha1.BundleApproval{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: approval}}); err != nil {
		r.t.Fatal(err)
	}
}

// consumed tells whether a BundleApproval was used.
func (r *rig) consumed(approval string) bool {
	r.t.Helper()
	var object v1alpha1.BundleApproval
	if err := shared.admin.Get(r.t.Context(), r.key(approval), &object); err != nil {
		r.t.Fatal(err)
	}
	return object.Status.ConsumedTime != nil
}

// guarded lets the second wave need approvals.
func guarded(approval v1alpha1.WaveApproval) func(*v1alpha1.BundleRolloutSpec) {
	return func(spec *v1alpha1.BundleRolloutSpec) { spec.Strategy.Waves[1].Approval = approval }
}

// pending waits until a wave needs an approval, and returns the plan.
func (r *rig) pending(what string) string {
	r.t.Helper()
	object := r.until(what, because(v1alpha1.ReasonApprovalPending))
	return object.Status.Waves[1].Plan
}

// TestR27Approvals decides about the second wave, which two clusters are in, in every way that must not open it, and in the right one.
func TestR27Approvals(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create(guarded(v1alpha1.WaveApprovalBoth))
	begin := r.pending("the second wave waits")
	object := r.get()
	current := object.Status.UpdateRevision
	if condition(object, "ApprovalPending") != "True ApprovalRequired" || condition(object, "Ready") != "False ApprovalPending" {
		t.Errorf("ApprovalPending is %s, Ready %s", condition(object, "ApprovalPending"), condition(object, "Ready"))
	}
	if want := rollout.WavePlan(r.namespace, name, string(r.get().UID), "two", v1alpha1.WaveApprovalBefore, current.Digest, "", 1); begin != want {
		t.Errorf("the plan is %s, want %s", begin, want)
	}
	end := rollout.WavePlan(r.namespace, name, string(r.get().UID), "two", v1alpha1.WaveApprovalAfter, current.Digest, "", 1)
	other := rollout.WavePlan(r.namespace, name, string(r.get().UID), "two", v1alpha1.WaveApprovalBefore, "sha256:other", "", 1)
	r.decide("expired", begin, func(s *v1alpha1.BundleApprovalSpec) {
		s.ExpirationTime = &metav1.Time{Time: r.now.Add(-time.Minute)}
	})
	r.decide("other-rollout", begin, func(s *v1alpha1.BundleApprovalSpec) { s.Rollout = "other" })
	r.decide("deployment", begin, func(s *v1alpha1.BundleApprovalSpec) { s.Rollout, s.Deployment = "", name })
	r.decide("other-revision", other)
	r.steps(3)
	if len(r.children()) != 1 {
		t.Fatalf("started: %v", r.starts())
	}
	r.decide("denied", begin, func(s *v1alpha1.BundleApprovalSpec) { s.Decision = v1alpha1.DecisionDeny })
	r.decide("ann", begin, func(s *v1alpha1.BundleApprovalSpec) { s.Approver = "ann" })
	object = r.until("denied", func(o *v1alpha1.BundleRollout) bool { return condition(o, "Stalled") == "True ApprovalDenied" })
	if len(r.children()) != 1 || r.consumed("ann") || condition(object, "ApprovalPending") != "True ApprovalDenied" {
		t.Fatalf("started: %v", r.starts())
	}
	r.slow["c2"] = true
	r.withdraw("denied")
	r.until("the wave begins", func(*v1alpha1.BundleRollout) bool { return r.children()["c2"] != nil })
	if !r.consumed("ann") || !slices.Contains(r.events.reasons, "ApprovalUsed") {
		t.Errorf("it was not marked as used; events: %v", r.events.reasons)
	}
	r.withdraw("ann")
	r.slow["c2"] = false
	if again := r.pending("the wave waits in its middle"); again != begin || r.children()["c3"] != nil {
		t.Fatalf("the plan is %s, started: %v", again, r.starts())
	}
	r.decide("bob", begin, func(s *v1alpha1.BundleApprovalSpec) { s.Approver = "bob" })
	r.until("the wave waits at its end", func(o *v1alpha1.BundleRollout) bool {
		return why(o) == v1alpha1.ReasonApprovalPending && o.Status.Waves[1].Plan == end && o.Status.Waves[1].SuccessTime != nil
	})
	r.steps(2)
	if r.children()["c4"] != nil {
		t.Fatal("the third wave began without an approval of the end of the second")
	}
	r.decide("end", end)
	object = r.until("v1 complete", complete("v1"))
	want := []v1alpha1.RolloutApproval{{Wave: "two", Name: "bob", Approver: "bob"}, {Wave: "two", Name: "end"}}
	if got := object.Status.History[0].Approvals; !slices.Equal(got, want) {
		t.Errorf("the history has %v, want %v", got, want)
	}
	if !r.consumed("end") || r.consumed("expired") || r.consumed("other-rollout") || condition(object, "ApprovalPending") != "" {
		t.Errorf("the wrong ones are marked as used; ApprovalPending is %q", condition(object, "ApprovalPending"))
	}
}

// TestR27Replay never lets an approval open a wave a second time: after a rollback, and after the status was lost.
func TestR27Replay(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create(guarded(v1alpha1.WaveApprovalBefore))
	r.decide("first", r.pending("v1 waits"))
	r.until("v1 complete", complete("v1"))
	r.publish("v2")
	r.slow["c3"] = true
	r.until("v2 waits", func(o *v1alpha1.BundleRollout) bool {
		return why(o) == v1alpha1.ReasonApprovalPending && r.versions("v2")["c1"] == "v2"
	})
	r.decide("second", r.get().Status.Waves[1].Plan)
	r.until("v2 is in the second wave", func(*v1alpha1.BundleRollout) bool { return r.versions("v2")["c2"] == "v2" })
	r.publish("v1")
	r.slow["c3"] = false
	r.until("v1 complete again", complete("v1"))
	r.publish("v2")
	r.until("v2 waits again", func(o *v1alpha1.BundleRollout) bool {
		return why(o) == v1alpha1.ReasonApprovalPending && r.versions("v2")["c1"] == "v2"
	})
	r.steps(3)
	if found := r.versions("v2"); len(found) != 1 {
		t.Fatalf("v2 is on %v", found)
	}
	r.publish("v1")
	r.until("v1 complete", complete("v1"))
	object := r.get()
	before := object.DeepCopy()
	object.Status = v1alpha1.BundleRolloutStatus{}
	if err := shared.admin.Status().Patch(t.Context(), object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	r.change("c2", func(d *v1alpha1.BundleDeployment) {
		d.Annotations[v1alpha1.RolloutSpecAnnotation] = format.RolloutSpec.Text("other")
	})
	r.restart()
	r.pending("v1 waits in the first run")
	if r.steps(3); !r.consumed("first") || why(r.get()) != v1alpha1.ReasonApprovalPending {
		t.Error("the approval of the lost run opened the wave")
	}
}

// withdrawing is a client that deletes an approval just before it is marked as used.
type withdrawing struct {
	client.Client
	before func()
}

type withdrawingStatus struct {
	client.SubResourceWriter
	before func()
}

func (c *withdrawing) Status() client.SubResourceWriter {
	return &withdrawingStatus{c.Client.Status(), c.before}
}

func (c *withdrawingStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, o ...client.SubResourcePatchOption) error {
	if _, isApproval := object.(*v1alpha1.BundleApproval); isApproval {
		c.before()
	}
	return c.SubResourceWriter.Patch(ctx, object, patch, o...)
}

// TestR27Withdrawn starts nothing because of an approval that is deleted when the start is recorded, and not carried out.
func TestR27Withdrawn(t *testing.T) {
	r := newRig(t)
	r.client = &withdrawing{Client: r.client, before: func() { r.withdraw("late") }}
	r.restart()
	r.publish("v1")
	r.create(guarded(v1alpha1.WaveApprovalBefore))
	r.decide("late", r.pending("the wave waits"))
	r.steps(1)
	r.pending("the wave waits again")
	if object := r.get(); len(object.Status.Starting) > 0 || r.children()["c2"] != nil {
		t.Errorf("recorded: %v, started: %v", object.Status.Starting, r.starts())
	}
}

// TestR25Approval releases exactly the clusters of a removal that an approval is for.
func TestR25Approval(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create()
	r.until("v1 complete", complete("v1"))
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Clusters = o.Spec.Clusters[:4] })
	r.until("the removal of two is held", func(o *v1alpha1.BundleRollout) bool { return condition(o, "RemovalHeld") == "True Held" })
	two := r.get().Status.Removal.Plan
	if want := rollout.RemovalPlan(r.namespace, name, string(r.get().UID), []string{"c5", "c6"}); two != want {
		t.Errorf("the plan is %s, want %s", two, want)
	}
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Clusters = o.Spec.Clusters[:3] })
	r.until("the removal of three is held", func(o *v1alpha1.BundleRollout) bool { return o.Status.Removal.Held == 3 })
	r.decide("two", two)
	r.steps(3)
	if len(r.children()) != 6 || r.consumed("two") {
		t.Fatal("an approval of two removed some of three")
	}
	r.edit(func(o *v1alpha1.BundleRollout) {
		o.Spec.Clusters = append(o.Spec.Clusters, cluster("c4", "three"))
	})
	r.until("two are removed", func(o *v1alpha1.BundleRollout) bool { return len(r.children()) == 4 && o.Status.Clusters.Leaving == 0 })
	if !r.consumed("two") || condition(r.get(), "RemovalHeld") != "" {
		t.Errorf("it was not marked as used; RemovalHeld is %q", condition(r.get(), "RemovalHeld"))
	}
}

// user is a client of a user with some of Satchel's roles in the namespace.
func (r *rig) user(who string, roles ...string) client.Client {
	r.t.Helper()
	for _, role := range roles {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: who + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}},
		}
		if err := shared.admin.Create(r.t.Context(), binding); err != nil {
			r.t.Fatal(err)
		}
	}
	config := rest.CopyConfig(shared.adminConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: who}
	c, err := installation.Client(config)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// refused wants an error of an admission policy.
func refused(t *testing.T, what string, err error, says string) {
	t.Helper()
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v, want it refused because %s", what, err, says)
	}
}

// TestR29Required is about a namespace that requires approval, and about who may do what there: an editor, who may also write the
// status of rollouts, and an approver.
func TestR29Required(t *testing.T) {
	r := newRig(t)
	var namespace corev1.Namespace
	if err := shared.admin.Get(t.Context(), client.ObjectKey{Name: r.namespace}, &namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Labels[v1alpha1.RequireApprovalLabel] = v1alpha1.RequireApproval
	if err := shared.admin.Update(t.Context(), &namespace); err != nil {
		t.Fatal(err)
	}
	forger := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "forger-" + r.namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"satchel.dev"}, Resources: []string{"bundlerollouts", "bundledeployments"}, Verbs: []string{"get", "create", "patch", "update"}},
		{APIGroups: []string{"satchel.dev"}, Resources: []string{"bundledeployments/status"}, Verbs: []string{"patch"}},
	}}
	if err := shared.admin.Create(t.Context(), forger); err != nil {
		t.Fatal(err)
	}
	statuses := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "statuses-" + r.namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"satchel.dev"}, Resources: []string{"bundlerollouts/status"}, Verbs: []string{"patch"}},
	}}
	if err := shared.admin.Create(t.Context(), statuses); err != nil {
		t.Fatal(err)
	}
	r.publish("v1")
	all := func(spec *v1alpha1.BundleRolloutSpec) {
		for i := range spec.Strategy.Waves {
			spec.Strategy.Waves[i].Approval = v1alpha1.WaveApprovalBefore
		}
		spec.Strategy.UnmatchedClusters = v1alpha1.UnmatchedExclude
	}
	r.create(all)
	editor, approver := r.user("ed-"+r.namespace, forger.Name), r.user("ann-"+r.namespace, "satchel-approve", forger.Name, statuses.Name)

	patch := func(by client.Client, change func(*v1alpha1.BundleRolloutSpec)) error {
		object := r.get()
		before := object.DeepCopy()
		change(&object.Spec)
		return by.Patch(t.Context(), object, client.MergeFrom(before), client.DryRunAll)
	}
	const notAll = "set approval of each wave to BeforeWave or Both"
	for what, change := range map[string]func(*v1alpha1.BundleRolloutSpec){
		"a wave without approval": func(s *v1alpha1.BundleRolloutSpec) { s.Strategy.Waves[2].Approval = v1alpha1.WaveApprovalNone },
		"only at its end":         func(s *v1alpha1.BundleRolloutSpec) { s.Strategy.Waves[2].Approval = v1alpha1.WaveApprovalAfter },
		"no waves":                func(s *v1alpha1.BundleRolloutSpec) { s.Strategy.Waves = nil },
		"unmatched clusters":      func(s *v1alpha1.BundleRolloutSpec) { s.Strategy.UnmatchedClusters = v1alpha1.UnmatchedLastWave },
	} {
		refused(t, what, patch(editor, change), notAll)
		if err := patch(approver, change); err != nil {
			t.Errorf("%s, by an approver: %v", what, err)
		}
	}
	for what, change := range map[string]func(*v1alpha1.RolloutCluster){
		"another kubeconfig": func(c *v1alpha1.RolloutCluster) { c.KubeConfig.SecretRef.Name = "other" },
		"another ClusterProfile": func(c *v1alpha1.RolloutCluster) {
			c.ClusterProfileRef = &v1alpha1.ClusterProfileReference{Name: "other"}
		},
	} {
		err := patch(editor, func(s *v1alpha1.BundleRolloutSpec) { change(s.Clusters[0].Cluster) })
		refused(t, what, err, "decide which cluster is in which wave")
	}
	refused(t, "another selector", patch(editor, func(s *v1alpha1.BundleRolloutSpec) {
		s.Strategy.Waves[0].Selector.MatchLabels = map[string]string{"ring": "three"}
	}), "can be changed only by an approver")
	if err := patch(editor, func(s *v1alpha1.BundleRolloutSpec) { s.Suspend = true }); err != nil {
		t.Errorf("an editor cannot suspend: %v", err)
	}

	plan := func() string {
		object := r.until("a wave waits", because(v1alpha1.ReasonApprovalPending))
		at := slices.IndexFunc(object.Status.Waves, func(w v1alpha1.RolloutWaveStatus) bool { return w.CompletionTime == nil })
		return object.Status.Waves[at].Plan
	}
	first := plan()
	approval := func(by client.Client, who string) error {
		object := &v1alpha1.BundleApproval{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "first"}}
		object.Spec = v1alpha1.BundleApprovalSpec{Rollout: name, Plan: first, Decision: v1alpha1.DecisionApprove, Approver: who}
		return by.Create(t.Context(), object)
	}
	refused(t, "an approval by an editor", approval(editor, ""), "cannot create resource")
	refused(t, "the name of another user", approval(approver, "ceo"), "spec.approver is ceo, and this client is ann-"+r.namespace)
	if err := approval(approver, "ann-"+r.namespace); err != nil {
		t.Fatal(err)
	}
	r.until("the first cluster is started", func(*v1alpha1.BundleRollout) bool { return len(r.children()) == 1 })
	r.decide("two", plan())
	r.until("the second wave is complete", func(*v1alpha1.BundleRollout) bool { return len(r.children()) == 3 })

	forged := r.get()
	before := forged.DeepCopy()
	forged.Status.Waves[2].Approval = "first"
	refused(t, "a forged status", r.user("eve-"+r.namespace, forger.Name, statuses.Name).Status().Patch(t.Context(), forged.DeepCopy(), client.MergeFrom(before)), "may be written only by the controller")
	if err := approver.Status().Patch(t.Context(), forged.DeepCopy(), client.MergeFrom(before), client.DryRunAll); err != nil {
		t.Errorf("the status, by an approver: %v", err)
	}
	child := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "forged", Labels: map[string]string{v1alpha1.RolloutLabel: name}}}
	child.Spec.ServiceAccountName = "deployer"
	child.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "bundle"}
	refused(t, "a BundleDeployment as the rollout would create it", editor.Create(t.Context(), child), "set spec.approval.mode to Manual or OnEscalation")
}
