// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/tests/installation"
)

// change patches a BundleDeployment, as people do.
func (r *rig) change(on string, change func(*v1alpha1.BundleDeployment)) {
	r.t.Helper()
	found := r.children()[on]
	before := found.DeepCopy()
	change(found)
	if err := shared.admin.Patch(r.t.Context(), found, client.MergeFrom(before), client.FieldOwner("people")); err != nil {
		r.t.Fatal(err)
	}
}

// TestHeal writes back what people change, also while the rollout is suspended, and leaves what they add.
func TestHeal(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create()
	r.until("v1 complete", complete("v1"))
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Suspend = true })
	r.publish("v2")
	r.until("suspended", because(v1alpha1.ReasonSuspended))
	before := r.children()["c5"]
	r.change("c5", func(d *v1alpha1.BundleDeployment) {
		d.Spec.Target.Namespace, d.Spec.SourceRef.Name, d.Spec.Suspend = "on-c5", "bundle", true
	})
	r.steps(1)
	after := r.children()["c5"]
	if after.Spec.SourceRef.Name != before.Spec.SourceRef.Name {
		t.Errorf("the source is %s, want %s", after.Spec.SourceRef.Name, before.Spec.SourceRef.Name)
	}
	if !after.Spec.Suspend {
		t.Error("suspend, which people may add, was removed")
	}
	if after.Annotations[v1alpha1.RolloutStartAnnotation] != before.Annotations[v1alpha1.RolloutStartAnnotation] {
		t.Error("what was written back counts as a start")
	}
	if len(after.OwnerReferences) > 0 {
		t.Errorf("owners: %v", after.OwnerReferences)
	}
}

// TestCollision never adopts a BundleDeployment of others.
func TestCollision(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	taken := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "app-c1"}}
	taken.Spec.ServiceAccountName, taken.Spec.SourceRef = "mine", &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "mine"}
	if err := shared.admin.Create(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	r.create()
	object := r.until("stalled", func(o *v1alpha1.BundleRollout) bool { return condition(o, "Stalled") == "True InvalidChild" })
	if worst := object.Status.Worst; len(worst) != 1 || !strings.Contains(worst[0].Message, "did not create it") {
		t.Errorf("worst: %v", worst)
	}
	if err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(taken), taken); err != nil || taken.Spec.ServiceAccountName != "mine" {
		t.Errorf("it was adopted: %v, %v", taken.Spec, err)
	}
	if len(r.children()) > 0 {
		t.Errorf("another wave began: %v", r.children())
	}
	if err := shared.admin.Delete(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	r.until("v1 complete", complete("v1"))
}

// racing is a client beside which another one creates a BundleDeployment, just before the first is applied.
type racing struct {
	client.Client
	before func()
	done   bool
}

func (c *racing) Apply(ctx context.Context, object runtime.ApplyConfiguration, o ...client.ApplyOption) error {
	var options client.ApplyOptions
	options.ApplyOptions(o)
	if text, err := json.Marshal(object); err == nil && len(options.DryRun) == 0 && !c.done && strings.Contains(string(text), `"name":"app-c1"`) {
		c.done = true
		c.before()
	}
	return c.Client.Apply(ctx, object, o...)
}

// TestCollisionAtTheLastMoment never adopts a BundleDeployment that another client creates after the controller has looked.
func TestCollisionAtTheLastMoment(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	taken := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "app-c1"}}
	taken.Spec.ServiceAccountName = "deployer"
	taken.Spec.Target.Namespace = "on-c1"
	taken.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "mine"}
	r.client = &racing{Client: r.client, before: func() {
		if err := shared.admin.Create(t.Context(), taken); err != nil {
			t.Error(err)
		}
	}}
	r.restart()
	r.create()
	r.until("stalled", func(o *v1alpha1.BundleRollout) bool { return condition(o, "Stalled") == "True InvalidChild" })
	err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(taken), taken)
	if err != nil || taken.Spec.SourceRef.Name != "mine" || taken.Labels[v1alpha1.RolloutLabel] != "" {
		t.Errorf("it was adopted: %v, %v, %v", taken.Labels, taken.Spec, err)
	}
}

// TestRefusedChild has a template that the API server refuses: no other cluster is started with it, and a repaired one goes on.
func TestRefusedChild(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Template.Spec = apiextensionsv1.JSON{Raw: []byte(`{"serviceAccountName":"deployer","target":{"namespace":"NOT A NAME"}}`)}
	})
	object := r.until("refused", func(o *v1alpha1.BundleRollout) bool { return condition(o, "Stalled") == "True InvalidChild" })
	if len(object.Status.Starting) > 0 || len(r.children()) > 0 {
		t.Errorf("starting: %v, children: %v", object.Status.Starting, r.children())
	}
	r.edit(func(o *v1alpha1.BundleRollout) {
		o.Spec.Template.Spec = apiextensionsv1.JSON{Raw: []byte(`{"serviceAccountName":"deployer"}`)}
	})
	r.until("v1 complete", complete("v1"))
}

// TestRefusedOverride has an override for the last wave that the API server refuses: no cluster is started, not even that of the first wave, the
// rollout goes on with the revision that it has, and a corrected override is rolled out.
func TestRefusedOverride(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create()
	r.until("v1 complete", complete("v1"))
	starts := r.get().Status.Starts
	override := func(name string) func(*v1alpha1.BundleRollout) {
		return func(o *v1alpha1.BundleRollout) {
			o.Spec.Overrides = []v1alpha1.RolloutOverride{{
				Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": "three"}},
				Patch:    apiextensionsv1.JSON{Raw: []byte(`{"helm":{"releaseName":"` + name + `"}}`)},
			}}
		}
	}
	r.edit(override("NOT A NAME"))
	object := r.until("refused", func(o *v1alpha1.BundleRollout) bool { return condition(o, "Stalled") == "True InvalidChild" })
	if message := messageOf(object); !strings.Contains(message, "cluster c4") || !strings.Contains(message, "spec.helm.releaseName") {
		t.Errorf("the message is %q", message)
	}
	r.change("c6", func(d *v1alpha1.BundleDeployment) { d.Spec.SourceRef.Name = "other" })
	r.steps(40)
	if got := r.children()["c6"].Spec.SourceRef.Name; got == "other" {
		t.Error("a BundleDeployment that another client changed is not written back")
	}
	if object := r.get(); object.Status.Starts != starts || object.Status.Run != 1 || object.Status.UpdateRevision.Name != object.Status.CurrentRevision.Name {
		t.Errorf("%d starts in run %d", object.Status.Starts-starts, object.Status.Run)
	}
	if told := slices.DeleteFunc(slices.Clone(r.events.reasons), func(reason string) bool { return reason != "RevisionRefused" }); len(told) != 1 {
		t.Errorf("%d events RevisionRefused", len(told))
	}
	r.edit(override("named"))
	r.until("the correction is complete", func(o *v1alpha1.BundleRollout) bool {
		return why(o) == v1alpha1.ReasonComplete && r.children()["c6"].Spec.Helm != nil
	})
	if r.children()["c1"].Spec.Helm != nil {
		t.Error("the override is for the last wave")
	}
}

func messageOf(object *v1alpha1.BundleRollout) string {
	for _, one := range object.Status.Conditions {
		if one.Type == "Ready" {
			return one.Message
		}
	}
	return ""
}

// TestSecrets lists clusters as the ServiceAccount of the template, with the permissions of that.
func TestSecrets(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	for on, ring := range map[string]string{"c1": "one", "c2": "two"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: on, Labels: map[string]string{"fleet": "edge", "ring": ring}}}
		if err := shared.admin.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Clusters = []v1alpha1.RolloutClusters{{KubeConfigSecrets: &v1alpha1.KubeConfigSecretClusters{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "edge"}}, Key: "config",
		}}}
	})
	object := r.until("the list is denied", func(o *v1alpha1.BundleRollout) bool { return condition(o, "ClustersKnown") == "False Unauthorized" })
	if len(r.children()) > 0 || condition(object, "Ready") != "False Unauthorized" {
		t.Errorf("Ready is %s, children: %v", condition(object, "Ready"), r.children())
	}
	if err := installation.Account(t.Context(), shared.admin, r.namespace, "deployer", "cluster-admin", ""); err != nil {
		t.Fatal(err)
	}
	r.until("v1 complete", complete("v1"))
	children := r.children()
	if ref := effective.RemoteCluster(children["c2"].Spec.Target.ClusterReference); ref == nil || ref.KubeConfig.SecretRef.Name != "c2" || ref.KubeConfig.SecretRef.Key != "config" {
		t.Errorf("kubeConfig of c2: %v", ref)
	}
}

// TestLeave removes a cluster that is no longer selected, and never all of them, or more than the limit.
func TestLeave(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create()
	r.until("v1 complete", complete("v1"))
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Clusters = o.Spec.Clusters[:5] })
	r.until("one is removed", func(o *v1alpha1.BundleRollout) bool { return o.Status.Clusters.Leaving == 0 && len(r.children()) == 5 })
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Clusters = o.Spec.Clusters[:3] })
	object := r.until("the removal is held", func(o *v1alpha1.BundleRollout) bool { return condition(o, "RemovalHeld") == "True Held" })
	r.steps(3)
	if len(r.children()) != 5 || object.Status.Removal.Held != 2 {
		t.Errorf("%d children are left; removal: %+v", len(r.children()), object.Status.Removal)
	}
	limit := intstr.FromString("100%")
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Removal.Limit = &limit })
	r.until("they are removed", func(*v1alpha1.BundleRollout) bool { return len(r.children()) == 3 })
}

// TestAbandon leaves the objects on a cluster of which the Secret is gone, and not those on one that is only no longer selected.
func TestAbandon(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	if err := installation.Account(t.Context(), shared.admin, r.namespace, "deployer", "cluster-admin", ""); err != nil {
		t.Fatal(err)
	}
	secret := func(on string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: on, Labels: map[string]string{"fleet": "edge", "ring": "one"}}}
	}
	for _, on := range []string{"c1", "c2", "c3"} {
		r.put(secret(on))
	}
	limit := intstr.FromString("100%")
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Clusters = []v1alpha1.RolloutClusters{{KubeConfigSecrets: &v1alpha1.KubeConfigSecretClusters{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "edge"}},
		}}}
		spec.Removal = v1alpha1.RolloutRemoval{WhenClusterGone: v1alpha1.GoneClusterAbandon, Limit: &limit}
	})
	r.until("v1 complete", complete("v1"))
	r.change("c1", func(d *v1alpha1.BundleDeployment) { d.Finalizers = []string{v1alpha1.Finalizer} }) // as the deployment controller has it
	abandoned := func() string { return r.children()["c1"].Annotations[v1alpha1.AbandonAnnotation] }
	unselected := secret("c1")
	unselected.Labels = nil
	r.put(unselected)
	r.until("c1 is being deleted", func(*v1alpha1.BundleRollout) bool { return !r.children()["c1"].DeletionTimestamp.IsZero() })
	child := r.children()["c1"]
	before := child.DeepCopy()
	apimeta.SetStatusCondition(&child.Status.Conditions, metav1.Condition{Type: v1alpha1.RemovalBlockedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonKubeConfigNotFound})
	if err := shared.admin.Status().Patch(t.Context(), child, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if r.steps(3); abandoned() != "" {
		t.Error("a cluster that has its Secret was abandoned")
	}
	if err := shared.admin.Delete(t.Context(), unselected); err != nil {
		t.Fatal(err)
	}
	r.until("the removal is abandoned", func(*v1alpha1.BundleRollout) bool { return abandoned() == "now" })
}

// TestR26Delete deletes the rollout: with Orphan all stays, with Delete its BundleDeployments go in the reverse order of the waves.
func TestR26Delete(t *testing.T) {
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionOrphan, v1alpha1.DeletionDelete} {
		t.Run(string(policy), func(t *testing.T) {
			r := newRig(t)
			r.publish("v1")
			r.create(func(spec *v1alpha1.BundleRolloutSpec) { spec.DeletionPolicy = policy })
			r.until("v1 complete", complete("v1"))
			if err := shared.admin.Delete(t.Context(), r.get(), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
				t.Fatal(err)
			}
			r.check = func() {
				children := r.children()
				if children["c1"] == nil && len(children) > 0 || children["c2"] == nil && children["c4"] != nil {
					t.Errorf("an earlier wave was removed first: %v", children)
				}
			}
			for range 30 {
				_ = r.step()
			}
			var left v1alpha1.BundleRollout
			if err := shared.admin.Get(t.Context(), r.key(name), &left); err != nil || slices.Contains(left.Finalizers, v1alpha1.Finalizer) {
				t.Fatalf("the rollout is not released: %v, %v", left.Status.Conditions, err)
			}
			before := left.DeepCopy() // what is left is done by a garbage collector, which does not run here
			left.Finalizers = nil
			if err := shared.admin.Patch(t.Context(), &left, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			want := map[v1alpha1.DeletionPolicy]int{v1alpha1.DeletionOrphan: 6, v1alpha1.DeletionDelete: 0}[policy]
			if got := len(r.children()); got != want {
				t.Errorf("%d BundleDeployments are left, want %d", got, want)
			}
			var kept appsv1.ControllerRevisionList
			if err := shared.admin.List(t.Context(), &kept, client.InNamespace(r.namespace)); err != nil || (len(kept.Items) > 0) != (want > 0) {
				t.Errorf("%d revisions are left; %v", len(kept.Items), err)
			}
			if policy == v1alpha1.DeletionOrphan {
				r.check = func() {}
				kept := r.children()["c3"].ResourceVersion
				r.create()
				r.until("v1 complete again", complete("v1"))
				if after := r.children()["c3"].ResourceVersion; after != kept {
					t.Error("a BundleDeployment was written although nothing changed")
				}
			}
		})
	}
}
