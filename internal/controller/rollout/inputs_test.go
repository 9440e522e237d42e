// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
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

// inputs are the references of the BundleDeployment of a cluster, in its first processor.
func (r *rig) inputs(on string) []v1alpha1.VariablesReference {
	r.t.Helper()
	return r.children()[on].Spec.Processors[0].Variables.ValuesFrom
}

// inputsOf are what the BundleDeployment of a cluster reads: the sizes of the copy of the ConfigMap and of the Secret.
func (r *rig) inputsOf(on string) string {
	r.t.Helper()
	from := r.inputs(on)
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
		spec.Template.Spec.Raw = []byte(`{"serviceAccountName":"deployer","target":{"namespace":"on-$(cluster)"},
			"processors":[{"variables":{"valuesFrom":[{"kind":"ConfigMap","name":"common"},{"kind":"Secret","name":"passwords"},{"kind":"ConfigMap","name":"absent","optional":true}]}}]}`)
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
	if got := r.inputsOf("c6"); got != "small one" || len(r.inputs("c6")) != 2 {
		t.Errorf("c6 reads %q, %v", got, r.inputs("c6"))
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

// ownValues are a ConfigMap of one cluster.
func ownValues(on, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "values-" + on}, Data: map[string]string{"size": value}}
}

// ownPassword is a Secret of one cluster.
func ownPassword(on, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password-" + on}, StringData: map[string]string{"password": value}}
}

// TestR37OwnInputs edits a ConfigMap and a Secret that only one cluster has: it is started with the change in its wave and not before,
// also when its BundleDeployment is written back meanwhile, and no other cluster is.
func TestR37OwnInputs(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	for _, on := range []string{"c1", "c2", "c3", "c4", "c5", "c6"} {
		r.put(ownValues(on, "small"))
		if on != "c2" {
			r.put(ownPassword(on, "one"))
		}
	}
	if err := installation.Account(t.Context(), shared.admin, r.namespace, "deployer", "cluster-admin", ""); err != nil {
		t.Fatal(err)
	}
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Template.Spec.Raw = []byte(`{"serviceAccountName":"deployer","target":{"namespace":"on-$(cluster)"},"processors":[{"variables":{"valuesFrom":[
			{"kind":"ConfigMap","name":"values-$(cluster)"},{"kind":"Secret","name":"password-$(cluster)"},{"kind":"ConfigMap","name":"extra-$(cluster)","optional":true}]}}]}`)
		spec.HistoryLimit = new(int32(1))
	})
	object := r.until("the Secret of c2 is missing", func(o *v1alpha1.BundleRollout) bool { return condition(o, "Stalled") == "True InvalidChild" })
	if message := apimeta.FindStatusCondition(object.Status.Conditions, "Stalled").Message; !strings.Contains(message, "secret "+r.namespace+"/password-c2 does not exist") {
		t.Errorf("the message is %q", message)
	}
	r.put(ownPassword("c2", "one"))
	r.until("v1 complete", complete("v1"))
	if got := r.inputsOf("c6"); got != "small one" || len(r.inputs("c6")) != 2 {
		t.Errorf("c6 reads %q, %v", got, r.inputs("c6"))
	}
	starts, first := r.get().Status.Starts, r.inputs("c6")[0].Name

	r.put(ownValues("c6", "large"))
	r.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "extra-c6"}})
	r.until("c6 has the change", func(o *v1alpha1.BundleRollout) bool {
		return r.inputsOf("c6") == "large one" && why(o) == v1alpha1.ReasonComplete
	})
	if object := r.get(); object.Status.Starts != starts+1 || object.Status.Run != 1 || r.inputsOf("c5") != "small one" {
		t.Errorf("%d starts in run %d; c5 reads %q", object.Status.Starts-starts, object.Status.Run, r.inputsOf("c5"))
	}
	if got := len(r.inputs("c6")); got != 3 {
		t.Errorf("c6 reads %d inputs, 3 exist", got)
	}

	r.edit(func(o *v1alpha1.BundleRollout) {
		o.Spec.Strategy.Waves[0].Soak = v1alpha1.Duration{Duration: time.Minute}
	})
	r.publish("v2")
	r.until("the first wave soaks with v2", func(o *v1alpha1.BundleRollout) bool {
		return why(o) == v1alpha1.ReasonSoaking && r.versions("v2")["c1"] != ""
	})
	started := r.children()["c6"]
	r.put(ownPassword("c6", "two"))
	r.steps(15)
	r.change("c6", func(d *v1alpha1.BundleDeployment) { d.Spec.Processors[0].Variables.ValuesFrom[1].Name = "password-c6" })
	r.restart()
	r.steps(15)
	healed := r.children()["c6"]
	if why(r.get()) != v1alpha1.ReasonSoaking || r.inputsOf("c6") != "large one" || healed.Annotations[v1alpha1.RolloutStartAnnotation] != started.Annotations[v1alpha1.RolloutStartAnnotation] {
		t.Errorf("%s: c6 reads %q before its wave; started by %v", why(r.get()), r.inputsOf("c6"), healed.Annotations)
	}
	r.until("v2 complete", complete("v2"))
	if got := r.inputsOf("c6"); got != "large two" {
		t.Errorf("c6 reads %q", got)
	}
	r.now = r.now.Add(2 * time.Minute)
	r.until("the first copy is removed", func(*v1alpha1.BundleRollout) bool {
		var gone corev1.ConfigMap
		return apierrors.IsNotFound(shared.admin.Get(t.Context(), r.key(first), &gone))
	})
	for on := range r.children() {
		r.inputsOf(on) // they are there
	}
}

// TestR37Returns brings a cluster back of which an input does not exist any more: it keeps what it has, is named, and is not started again
// and again.
func TestR37Returns(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	if err := installation.Account(t.Context(), shared.admin, r.namespace, "deployer", "cluster-admin", ""); err != nil {
		t.Fatal(err)
	}
	for _, on := range []string{"c1", "c2", "c3", "c4", "c5", "c6"} {
		r.put(ownValues(on, "small"))
	}
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Template.Spec.Raw = []byte(`{"serviceAccountName":"deployer","target":{"namespace":"on-$(cluster)"},"processors":[{"variables":{"valuesFrom":[{"kind":"ConfigMap","name":"values-$(cluster)"}]}}]}`)
	})
	r.until("v1 complete", complete("v1"))
	r.edit(func(o *v1alpha1.BundleRollout) {
		o.Spec.Strategy.Waves[1].Soak = v1alpha1.Duration{Duration: time.Hour}
	})
	r.publish("v2")
	r.until("the second wave soaks with v2", func(o *v1alpha1.BundleRollout) bool {
		return why(o) == v1alpha1.ReasonSoaking && r.versions("v2")["c3"] != ""
	})
	gone := ownValues("c2", "")
	gone.Namespace = r.namespace
	if err := shared.admin.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	current := r.get().Status.CurrentRevision.Name
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Revision = current })
	r.until("all that can be are brought back", func(o *v1alpha1.BundleRollout) bool {
		found := r.versions("v1", "v2")
		return found["c1"] == "v1" && found["c3"] == "v1" && o.Status.Clusters.Updating == 0
	})
	r.steps(3)
	starts := r.get().Status.Starts
	r.steps(10)
	if object := r.get(); object.Status.Starts != starts || r.versions("v2")["c2"] != "v2" {
		t.Errorf("%d starts at rest; %v", object.Status.Starts-starts, r.versions("v1", "v2"))
	}
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
		d.Spec.Target.Namespace = "on-c6"
		d.Spec.Health.Timeout = v1alpha1.Duration{Duration: 90_000_000_000}
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
			one.ClusterReference = v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: one.Name}}}
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
