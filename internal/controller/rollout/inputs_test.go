// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
	"github.com/satchel-dev/satchel/tests/installation"
)

// put creates or changes a Secret or ConfigMap.
func (r *rig) put(object client.Object) {
	r.t.Helper()
	object.SetNamespace(r.namespace)
	err := shared.admin.Create(r.t.Context(), object)
	if apierrors.IsAlreadyExists(err) {
		err = shared.admin.Update(r.t.Context(), object)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func common(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "common"}, Data: map[string]string{"size": value}}
}

func passwords(value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "passwords"}, StringData: map[string]string{"password": value}}
}

// inputsOf are what the BundleDeployment of a cluster reads: the sizes of the copy of the ConfigMap and of the Secret.
func (r *rig) inputsOf(on string) string {
	r.t.Helper()
	from := r.children()[on].Spec.PostBuild.SubstituteFrom
	var configMap corev1.ConfigMap
	var secret corev1.Secret
	if err := shared.admin.Get(r.t.Context(), r.key(from[0].Name), &configMap); err != nil {
		r.t.Fatal(err)
	}
	if err := shared.admin.Get(r.t.Context(), r.key(from[1].Name), &secret); err != nil {
		r.t.Fatal(err)
	}
	if configMap.Immutable == nil || secret.Immutable == nil || !*configMap.Immutable || !*secret.Immutable {
		r.t.Errorf("the copies can be changed: %v, %v", configMap.Immutable, secret.Immutable)
	}
	return configMap.Data["size"] + " " + string(secret.Data["password"])
}

// TestR37SharedInputs edits a ConfigMap and a Secret that all clusters share: no cluster gets the change before its wave, each content
// is a revision, and copies go with their revision.
func TestR37SharedInputs(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Template.Spec.Raw = []byte(`{"serviceAccountName":"deployer","installNamespace":"on-$(cluster)",
			"postBuild":{"substituteFrom":[{"kind":"ConfigMap","name":"common"},{"kind":"Secret","name":"passwords"},{"kind":"ConfigMap","name":"absent","optional":true}]}}`)
		spec.HistoryLimit = new(int32(1))
		spec.Strategy.Waves[0].Soak = v1alpha1.Duration{Duration: 10_000_000_000}
	})
	r.put(common("small"))
	object := r.until("the Secret is missing", func(o *v1alpha1.BundleRollout) bool { return condition(o, "SourceReady") == "False InputNotFound" })
	if len(r.children()) > 0 {
		t.Fatalf("started: %v, %v", r.starts(), object.Status.Conditions)
	}
	r.put(passwords("one"))
	if err := installation.Account(t.Context(), shared.admin, r.namespace, "deployer", "cluster-admin", ""); err != nil {
		t.Fatal(err)
	}
	r.until("v1 complete", complete("v1"))
	first := r.get().Status.CurrentRevision.Name
	if got := r.inputsOf("c6"); got != "small one" || len(r.children()["c6"].Spec.PostBuild.SubstituteFrom) != 2 {
		t.Errorf("c6 reads %q, %v", got, r.children()["c6"].Spec.PostBuild)
	}
	r.put(common("large"))
	r.until("the first wave soaks with the change", func(o *v1alpha1.BundleRollout) bool {
		return why(o) == v1alpha1.ReasonSoaking && o.Status.UpdateRevision.Name != first
	})
	if canary, last := r.inputsOf("c1"), r.inputsOf("c6"); canary != "large one" || last != "small one" {
		t.Errorf("c1 reads %q, c6 %q", canary, last)
	}
	second := r.get().Status.UpdateRevision.Name
	r.put(passwords("two"))
	object = r.until("the change of the Secret is complete", func(o *v1alpha1.BundleRollout) bool {
		return why(o) == v1alpha1.ReasonComplete && o.Status.CurrentRevision.Name != first && o.Status.CurrentRevision.Name != second
	})
	if got := r.inputsOf("c6"); got != "large two" {
		t.Errorf("c6 reads %q", got)
	}
	if strings.Contains(object.Status.CurrentRevision.Revision, "two") {
		t.Error("the status shows a Secret")
	}
	r.now = r.now.Add(2 * 60_000_000_000)
	r.until("the copies of the first revision are removed", func(*v1alpha1.BundleRollout) bool {
		var gone corev1.ConfigMap
		return apierrors.IsNotFound(shared.admin.Get(t.Context(), r.key(revision.InputName(name, first, 0)), &gone))
	})
}

// TestR38AnotherForm starts no cluster when the hashes of specs have another form, as after an upgrade of Satchel.
func TestR38AnotherForm(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create()
	r.until("v1 complete", complete("v1"))
	before := map[string]string{}
	for on, child := range r.children() {
		before[on] = child.Annotations[v1alpha1.RolloutSpecAnnotation]
		r.change(on, func(d *v1alpha1.BundleDeployment) { d.Annotations[v1alpha1.RolloutSpecAnnotation] = "v0:" + on })
	}
	starts := r.get().Status.Starts
	r.restart()
	r.steps(3)
	after := map[string]string{}
	for on, child := range r.children() {
		after[on] = child.Annotations[v1alpha1.RolloutSpecAnnotation]
	}
	if object := r.get(); object.Status.Starts != starts || why(object) != v1alpha1.ReasonComplete || !maps.Equal(before, after) {
		t.Errorf("%d starts, %s; hashes: %v", object.Status.Starts-starts, why(object), after)
	}
	r.change("c6", func(d *v1alpha1.BundleDeployment) {
		d.Annotations[v1alpha1.RolloutSpecAnnotation] = "v0:c6"
		d.Spec.InstallNamespace = "on-c6"
		d.Spec.Timeout = v1alpha1.Duration{Duration: 90_000_000_000}
	})
	r.steps(2)
	if object := r.get(); object.Status.Starts != starts {
		t.Errorf("what a user added is no change of the spec: %d starts", object.Status.Starts-starts)
	}
}

// TestDuplicateCluster holds two names of one cluster, and no other.
func TestDuplicateCluster(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		for i := range spec.Clusters {
			one := spec.Clusters[i].Cluster
			one.KubeConfig = &v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: one.Name}}
		}
	})
	r.until("v1 complete", complete("v1"))
	for on, child := range r.children() {
		before := child.DeepCopy()
		child.Status.Inventory = &v1alpha1.Inventory{Target: "uid-of-" + on}
		if on == "c5" {
			child.Status.Inventory.Target = "uid-of-c4"
		}
		if err := shared.admin.Status().Patch(t.Context(), child, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	r.publish("v2")
	object := r.until("the last wave is held", because(v1alpha1.ReasonHeld))
	if object.Status.Clusters.Held != 2 || !strings.Contains(messageOf(object), "c4, c5") {
		t.Errorf("%d are held: %s", object.Status.Clusters.Held, messageOf(object))
	}
	if found := slices.Sorted(maps.Keys(r.versions("v2"))); !slices.Equal(found, []string{"c1", "c2", "c3", "c6"}) {
		t.Errorf("v2 is on %v", found)
	}
}
