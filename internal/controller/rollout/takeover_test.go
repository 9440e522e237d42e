// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// editor is a client of a user who may write rollouts and BundleDeployments, and not approve.
func (r *rig) editor() client.Client {
	r.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "writer-" + r.namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"satchel.dev"}, Resources: []string{"bundlerollouts", "bundledeployments"}, Verbs: []string{"*"}},
	}}
	if err := shared.admin.Create(r.t.Context(), role); err != nil {
		r.t.Fatal(err)
	}
	return r.user("writer-"+r.namespace, role.Name)
}

// TestR40Guarded: an editor cannot move a cluster to another wave by any field of a rollout that needs approvals.
func TestR40Guarded(t *testing.T) {
	r := newRig(t)
	secret := func(name string) v1alpha1.ClusterReference {
		return v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: name}}}
	}
	r.create(guarded(v1alpha1.WaveApprovalBefore), func(s *v1alpha1.BundleRolloutSpec) {
		s.Clusters[1].Cluster.ClusterReference = secret("c2")
		s.Clusters[1].Cluster.ServiceAccountName = "installer"
		s.Clusters = append(s.Clusters, v1alpha1.RolloutClusters{KubeConfigSecrets: &v1alpha1.KubeConfigSecretClusters{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "edge"}}}})
	})
	editor, approver := r.editor(), r.user("ann-"+r.namespace, "satchel-approve", "writer-"+r.namespace)
	edit := func(by client.Client, change func(*v1alpha1.BundleRolloutSpec)) error {
		object := r.get()
		before := object.DeepCopy()
		change(&object.Spec)
		return by.Patch(t.Context(), object, client.MergeFrom(before), client.DryRunAll)
	}
	second := func(s *v1alpha1.BundleRolloutSpec) *v1alpha1.RolloutCluster { return s.Clusters[1].Cluster }
	for what, change := range map[string]func(*v1alpha1.BundleRolloutSpec){
		"label":                   func(s *v1alpha1.BundleRolloutSpec) { second(s).Labels["ring"] = "one" },
		"another label":           func(s *v1alpha1.BundleRolloutSpec) { second(s).Labels["more"] = "one" },
		"no labels":               func(s *v1alpha1.BundleRolloutSpec) { second(s).Labels = nil },
		"rename":                  func(s *v1alpha1.BundleRolloutSpec) { second(s).Name = "renamed" },
		"kubeConfig":              func(s *v1alpha1.BundleRolloutSpec) { second(s).ClusterReference = secret("other") },
		"key of the kubeConfig":   func(s *v1alpha1.BundleRolloutSpec) { second(s).ClusterReference.KubeConfig.SecretRef.Key = "other" },
		"kubeConfig of the first": func(s *v1alpha1.BundleRolloutSpec) { s.Clusters[0].Cluster.ClusterReference = secret("c2") },
		"remote account":          func(s *v1alpha1.BundleRolloutSpec) { second(s).ServiceAccountName = "admin" },
		"no remote account":       func(s *v1alpha1.BundleRolloutSpec) { second(s).ServiceAccountName = "" },
		"removed":                 func(s *v1alpha1.BundleRolloutSpec) { s.Clusters = append(s.Clusters[:1:1], s.Clusters[2:]...) },
		"order":                   func(s *v1alpha1.BundleRolloutSpec) { s.Clusters[0], s.Clusters[6] = s.Clusters[6], s.Clusters[0] },
		"first entry": func(s *v1alpha1.BundleRolloutSpec) {
			s.Clusters = append([]v1alpha1.RolloutClusters{cluster("c2", "one")}, s.Clusters...)
		},
		"same cluster, new name": func(s *v1alpha1.BundleRolloutSpec) { s.Clusters = append(s.Clusters, cluster("c9", "one")) },
		"listed instead": func(s *v1alpha1.BundleRolloutSpec) {
			s.Clusters[1] = v1alpha1.RolloutClusters{ClusterAPI: &v1alpha1.ClusterAPIClusters{}}
		},
		"selector of Secrets": func(s *v1alpha1.BundleRolloutSpec) {
			s.Clusters[6].KubeConfigSecrets.Selector.MatchLabels = map[string]string{"fleet": "other"}
		},
		"key of Secrets": func(s *v1alpha1.BundleRolloutSpec) { s.Clusters[6].KubeConfigSecrets.Key = "other" },
	} {
		refused(t, what, edit(editor, change), "can be changed only by an approver")
		if err := edit(approver, change); err != nil {
			t.Errorf("%s, by an approver: %v", what, err)
		}
	}
	for what, change := range map[string]func(*v1alpha1.BundleRolloutSpec){
		"annotations": func(s *v1alpha1.BundleRolloutSpec) {
			second(s).Annotations = map[string]string{"domain": "example.org"}
		},
		"template": func(s *v1alpha1.BundleRolloutSpec) {
			s.Template.Spec.Raw = []byte(`{"serviceAccountName":"deployer","path":"b"}`)
		},
		"suspend": func(s *v1alpha1.BundleRolloutSpec) { s.Suspend = true },
	} {
		if err := edit(editor, change); err != nil {
			t.Errorf("%s, by an editor: %v", what, err)
		}
	}
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Strategy.Waves[1].Approval = v1alpha1.WaveApprovalNone })
	if err := edit(editor, func(s *v1alpha1.BundleRolloutSpec) { second(s).Labels["ring"] = "one" }); err != nil {
		t.Errorf("without a wave that needs an approval: %v", err)
	}
}

// orphan deletes the rollout, and leaves its BundleDeployments.
func (r *rig) orphan() {
	r.t.Helper()
	if err := shared.admin.Delete(r.t.Context(), r.get()); err != nil {
		r.t.Fatal(err)
	}
	for range 20 {
		var object v1alpha1.BundleRollout
		if err := shared.admin.Get(r.t.Context(), r.key(name), &object); apierrors.IsNotFound(err) {
			return
		}
		_ = r.step()
	}
	r.t.Fatal("the rollout is not gone")
}

// TestR40Recreated: a rollout that is deleted, and created without approvals, waits for an approver before it changes anything.
func TestR40Recreated(t *testing.T) {
	relabelled := func(s *v1alpha1.BundleRolloutSpec) { s.Clusters[1].Cluster.Labels["ring"] = "one" }
	for what, change := range map[string]func(*v1alpha1.BundleRolloutSpec){
		"without approval": func(*v1alpha1.BundleRolloutSpec) {},
		"with other labels": func(s *v1alpha1.BundleRolloutSpec) {
			guarded(v1alpha1.WaveApprovalBefore)(s)
			relabelled(s)
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			r.publish("v1")
			r.create(guarded(v1alpha1.WaveApprovalBefore))
			r.decide("v1", r.pending("the wave waits"))
			r.until("v1 complete", complete("v1"))
			r.orphan()
			r.publish("v2")
			r.create(change)
			object := r.until("an approver has to decide", func(o *v1alpha1.BundleRollout) bool { return o.Status.Takeover != nil })
			r.steps(5)
			if found := r.versions("v2"); len(found) > 0 || len(object.Status.Starting) > 0 || condition(r.get(), "Ready") != "False ApprovalPending" {
				t.Fatalf("v2 is on %v, Ready is %s", found, condition(r.get(), "Ready"))
			}
			if object.Status.Takeover.Clusters != 6 {
				t.Errorf("%d clusters", object.Status.Takeover.Clusters)
			}
			// To delete the rollout that waits, and create another one, changes nothing.
			r.orphan()
			r.create(change)
			object = r.until("an approver has to decide again", func(o *v1alpha1.BundleRollout) bool { return o.Status.Takeover != nil })
			mark := r.children()["c2"].Annotations[v1alpha1.RolloutGatesAnnotation]
			child := r.children()["c2"]
			before := child.DeepCopy()
			delete(child.Annotations, v1alpha1.RolloutGatesAnnotation)
			refused(t, "the mark is removed", r.editor().Patch(t.Context(), child, client.MergeFrom(before)), "can be changed only by an approver")
			r.decide("takeover", object.Status.Takeover.Plan)
			r.until("it goes on", func(_ *v1alpha1.BundleRollout) bool { return len(r.versions("v2")) > 0 })
			if !r.consumed("takeover") || r.get().Status.Takeover != nil || r.children()["c2"].Annotations[v1alpha1.RolloutGatesAnnotation] == mark {
				t.Error("the approval was not used, or a BundleDeployment still has the former mark")
			}
		})
	}
}

// TestR40Restored: the same rollout is taken over without an approver, and needs new approvals of its waves.
func TestR40Restored(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create(guarded(v1alpha1.WaveApprovalBefore))
	r.decide("v1", r.pending("the wave waits"))
	r.until("v1 complete", complete("v1"))
	r.orphan()
	r.publish("v2")
	r.create(guarded(v1alpha1.WaveApprovalBefore))
	r.pending("the second wave waits")
	if found := r.versions("v2"); len(found) != 1 || r.get().Status.Takeover != nil {
		t.Errorf("v2 is on %v", found)
	}
}

// TestR40Replayed: an approval of a former rollout, which was not used, opens no wave and permits no removal of a later one.
func TestR40Replayed(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create(guarded(v1alpha1.WaveApprovalBoth))
	plan := r.pending("the wave waits")
	r.orphan()
	r.decide("unused", plan)
	r.create(guarded(v1alpha1.WaveApprovalBoth))
	if now := r.pending("the wave of the later rollout waits"); now == plan {
		t.Error("both rollouts have one plan")
	}
	if r.steps(5); len(r.versions("v1")) != 1 || r.consumed("unused") {
		t.Errorf("v1 is on %v", r.versions("v1"))
	}
}

// A removal that was approved for a former rollout is none of a later one.
func TestR40Released(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create()
	r.until("v1 complete", complete("v1"))
	for _, value := range []string{"sha256:" + strings.Repeat("0", 64), "00000000-0000-0000-0000-000000000000/sha256:0", "/sha256:0"} {
		for _, on := range []string{"c5", "c6"} {
			r.change(on, func(d *v1alpha1.BundleDeployment) { d.Annotations[v1alpha1.RolloutReleasedAnnotation] = value })
		}
		r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Clusters = o.Spec.Clusters[:4] })
		r.until("the removal of two is held", func(o *v1alpha1.BundleRollout) bool { return condition(o, "RemovalHeld") == "True Held" })
		if r.steps(3); len(r.children()) != 6 {
			t.Errorf("%s: %d clusters are left", value, len(r.children()))
		}
	}
}
