// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/internal/controller/keyring"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// Replicas that start at once agree on one key, which one of them makes, with exactly the permissions of the controller. A
// Secret that is missing or of no use is an error.
func TestKeysOfTheInstallation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	config, err := installation.AccountConfig(t.Context(), r.cp.RESTConfig(), installation.Namespace, deployment.FieldManager)
	if err != nil {
		t.Fatal(err)
	}
	own, err := installation.Client(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keyring.Load(t.Context(), own, own, installation.Namespace, time.Now()); err != nil {
		t.Errorf("with the permissions of the controller: %v", err)
	}
	if err := own.Get(t.Context(), client.ObjectKey{Namespace: installation.Namespace, Name: "other"}, &corev1.Secret{}); !apierrors.IsForbidden(err) {
		t.Errorf("another Secret: %v", err)
	}

	namespace := controlplane.NewNamespace(t, r.cp)
	if _, err := keyring.Load(t.Context(), r.admin, r.admin, namespace, time.Now()); err == nil || !strings.Contains(err.Error(), "does not exist: restore it") {
		t.Errorf("without the Secret: %v", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keyring.SecretName}}
	r.create(t, secret)
	const replicas = 8
	var signatures [replicas]string
	var group sync.WaitGroup
	for i := range replicas {
		group.Go(func() {
			ring, err := keyring.Load(t.Context(), r.admin, r.admin, namespace, time.Now().Add(time.Duration(i)*time.Second))
			if err != nil {
				t.Error(err)
			}
			signatures[i] = ring.Sign("text")
		})
	}
	group.Wait()
	for i := range signatures {
		if signatures[i] == "" || signatures[i] != signatures[0] {
			t.Errorf("replica %d has another key", i)
		}
	}
	if err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil || len(secret.Data) != 1 {
		t.Fatalf("%d keys, %v", len(secret.Data), err)
	}
	secret.Data = map[string][]byte{"short": []byte("short")}
	if err := r.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := keyring.Load(t.Context(), r.admin, r.admin, namespace, time.Now()); err == nil || !strings.Contains(err.Error(), `entry "short"`) {
		t.Errorf("a useless key: %v", err)
	}
}

// After a rotation, and after the former key was removed, nothing is applied again, the approved plan stays approved, and an
// edit waits for an approval as before.
func TestRotationOfKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "s.yaml": file("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n")})
	key := r.deploy(t, namespace, "app", both(quick, asking(v1alpha1.ApprovalManual), left))
	ring := func(names ...string) keyring.Ring {
		data := map[string][]byte{}
		for _, name := range names {
			data[name] = bytes.Repeat([]byte(name), 32)
		}
		keys, err := keyring.New(data)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	d := r.drive(t, key, nil)
	d.Change(func(deps *deployment.Deps) { deps.Keys = ring("1") })
	r.decide(t, key, d.waits(t, first.Revision))
	applied, _ := d.ready(t)
	record, wrapped := applied.Status.Internal.Executed.DeepCopy(), applied.Status.Internal.HashKey
	mark := r.mark(t)
	for _, names := range [][]string{{"1", "2"}, {"2"}, {"2", "3"}, {"3"}} {
		d = d.again(t, nil)
		d.Change(func(deps *deployment.Deps) { deps.Keys = ring(names...) })
		d.now = d.now.Add(time.Hour)
		now, _ := d.ready(t)
		if now.Status.Internal.Executed == nil || now.Status.Internal.Executed.Plan != record.Plan || now.Status.Internal.Executed.Key != record.Key || now.Status.Internal.HashKey == "" {
			t.Fatalf("%v: the record is another one: %+v", names, now.Status.Internal.Executed)
		}
		if !d.Proven(now) {
			t.Errorf("%v: what was approved is not believed", names)
		}
	}
	if now := d.deployment(t); now.Status.Internal.HashKey == wrapped {
		t.Error("the key of the hashes is still encrypted with the first key")
	}
	if writes := r.writesAs(t, namespace, "installer", mark); len(writes) > 0 {
		t.Errorf("written: %v", writes)
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Labels = nil }) // the running controller removes it
}
