// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/internal/controller/keyring"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// The executed plan in a status is trusted only as the controller wrote it: not with a
// changed field, not from another deployment, not with another key.
func TestProofOfWhatWasCarriedOut(t *testing.T) {
	former, latest := bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32)
	with := func(data map[string][]byte) *deployment.Reconciler {
		ring, err := keyring.New(data)
		if err != nil {
			t.Fatal(err)
		}
		return deployment.NewReconciler(deployment.Deps{Keys: ring})
	}
	r := with(map[string][]byte{"1": former})
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{UID: "one"}}
	d.Status.Internal.Executed = &v1alpha1.ExecutedPlan{
		Plan: "plan", Key: "key", Terms: "terms", Base: "base", Grounds: "grounds", Approval: "approval", Generation: 7, StartTime: metav1.NewTime(time.Now().Truncate(time.Second)),
		ServiceAccountName: "account", RemoteServiceAccountName: "remote", DeletionPolicy: v1alpha1.DeletionDelete, DeletesDefinitions: true,
		Cluster:         &v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: "a"}}},
		KubeConfigReach: "reach",
	}
	r.Prove(d)
	if !r.Proven(d) {
		t.Fatal("what the controller wrote is not believed")
	}
	fields := reflect.TypeFor[v1alpha1.ExecutedPlan]()
	for i := range fields.NumField() {
		forged := d.DeepCopy()
		reflect.ValueOf(forged.Status.Internal.Executed).Elem().Field(i).SetZero()
		if r.Proven(forged) {
			t.Errorf("believed without its %s", fields.Field(i).Name)
		}
	}
	other := d.DeepCopy()
	other.UID = "two"
	if r.Proven(other) {
		t.Error("believed of another deployment")
	}
	if with(map[string][]byte{"2": latest}).Proven(d) {
		t.Error("believed with another key")
	}
	if !with(map[string][]byte{"1": former, "2": latest}).Proven(d) {
		t.Error("not believed after a rotation")
	}
	other.Status.Internal.Executed = nil
	if r.Proven(other) {
		t.Error("nothing is believed")
	}
}

// While another ServiceAccount is proposed, drift is corrected as the approved
// ServiceAccount, and the other one writes nothing.
func TestApprovalAndAnotherServiceAccount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := r.guarded(t)
	namespace := g.key.Namespace
	if err := installation.Admin(t.Context(), r.admin, namespace, "stronger"); err != nil {
		t.Fatal(err)
	}
	var before v1alpha1.BundleDeployment
	if err := r.admin.Get(t.Context(), g.key, &before); err != nil {
		t.Fatal(err)
	}
	correctedAsInstaller := func(mark controlplane.AuditMark) {
		t.Helper()
		r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"drifted"}}`)
		r.holds(t, namespace, "a", "one")
		if written := r.writesAs(t, namespace, "stronger", mark); len(written) > 0 {
			t.Errorf("written as a ServiceAccount without an approval: %v", written)
		}
		if written := r.writesAs(t, namespace, "installer", mark); len(written) == 0 {
			t.Error("the audit log does not show who repaired it")
		}
	}
	mark := r.mark(t)
	r.edit(t, g.key, func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "stronger" })
	r.until(t, g.key, "another plan", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Plan.Digest != before.Status.Plan.Digest
	})
	correctedAsInstaller(mark)
	r.delete(t, object("satchel.dev/v1alpha1", "BundleSource", namespace, effective.SourceName(&before)))
	r.until(t, g.key, "the plan is unknown", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsFalse(d, v1alpha1.SourceReadyCondition)
	})
	correctedAsInstaller(r.mark(t))
}
