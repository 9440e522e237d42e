// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// F36: etcd is restored from a backup older than what the running controllers know. Both notice it
// within seconds and go on without a restart: the revision that is published upstream is installed
// again, drift is corrected, what was created after the backup is forgotten, and nothing is pruned
// that the bundle has.
func TestF36EtcdRestoredFromBackup(t *testing.T) {
	releaseOnly(t)
	r := newRig(t)
	r.CP.RequireControl(t)
	namespace := r.Namespace(t)
	const repository = "f36:v1"
	image := r.Push(t, repository, configMaps("both", 3))
	key := r.Deploy(t, namespace, "app", image, nil)
	first := r.Ready(t, key).Status.Applied.Revision
	backup := r.backUp(t)

	r.Push(t, repository, configMaps("both", 3), configMaps("second", 2))
	second := r.Until(t, key, "Ready at the second revision", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(d, meta.ReadyCondition) && d.Status.Applied.Revision != first
	}).Status.Applied.Revision
	late := r.Deploy(t, namespace, "late", r.Push(t, "f36-late:v1", configMaps("late", 1)), nil)
	r.Ready(t, late)
	for i := range 300 { // the storage is far ahead of the backup
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("filler-%03d", i)}}
		if err := r.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	processes := r.Pids()
	r.restore(t, backup)
	restored := time.Now()

	r.Until(t, key, "Ready at the second revision again", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(d, meta.ReadyCondition) && d.Status.Applied.Revision == second && len(r.named(t, namespace, "second")) == 2
	})
	t.Logf("converged %s after the restore", time.Since(restored).Round(100*time.Millisecond))
	if took := time.Since(restored); took > 6*10*time.Second {
		t.Errorf("converged after %s", took)
	}
	if kept := r.named(t, namespace, "both"); len(kept) != 3 {
		t.Errorf("of the objects that both revisions have there are %v", kept)
	}
	var gone v1alpha1.BundleDeployment
	if err := r.Admin.Get(t.Context(), late, &gone); !apierrors.IsNotFound(err) {
		t.Errorf("a deployment of after the backup: %v", err)
	}
	r.corrected(t, namespace, "both-00")
	if now := r.Pids(); !maps.Equal(now, processes) {
		t.Errorf("the controllers were restarted: %v, before %v", now, processes)
	}
	for _, name := range []string{sourceController, deploymentController} {
		content, err := os.ReadFile(r.File(name + ".log"))
		if err != nil || !strings.Contains(string(content), "went back in time") {
			t.Errorf("%s does not say that time went back (%v); its log ends in:\n%s", name, err, r.Log(name))
		}
	}
	r.noLoop(t, namespace)
}

// noLoop makes sure that nothing is asked for in a loop.
func (r *rig) noLoop(t *testing.T, namespace string) {
	t.Helper()
	mark, err := r.CP.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	<-time.After(5 * time.Second)
	events, err := r.CP.Audit(mark)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, e := range events {
		if strings.Contains(e.RequestURI, namespace) && strings.Contains(e.User, "satchel") {
			count++
		}
	}
	if perSecond := float64(count) / time.Since(began).Seconds(); perSecond > 10 {
		t.Errorf("%.0f requests a second about one namespace", perSecond)
	}
}

// corrected changes an object of a bundle and waits until that is put right.
func (r *rig) corrected(t *testing.T, namespace, name string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"drifted"}}`))
	if err := r.Admin.Patch(t.Context(), object, patch); err != nil {
		t.Fatal(err)
	}
	r.Eventually(t, t.Context(), "drift of "+name+" is corrected", func(ctx context.Context) (bool, string) {
		var found corev1.ConfigMap
		err := r.Admin.Get(ctx, client.ObjectKeyFromObject(object), &found)
		return err == nil && found.Data["a"] == "b", fmt.Sprint(found.Data, err)
	})
}

// backUp copies etcd's folder, as after a power failure: what is on the disk is consistent.
func (r *rig) backUp(t *testing.T) string {
	t.Helper()
	etcd := r.CP.Etcd()
	if err := etcd.Pause(); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "etcd")
	copied := os.CopyFS(backup, os.DirFS(filepath.Join(r.CP.Dir(), "etcd")))
	if err := etcd.Resume(); err != nil {
		t.Fatal(err)
	}
	if copied != nil {
		t.Fatal(copied)
	}
	return backup
}

// restore puts a backup in the place of etcd's folder, as its documentation says: with the API server
// down. What else watches the API server is started again in the end.
func (r *rig) restore(t *testing.T, backup string) {
	t.Helper()
	others := []*controlplane.Component{r.CP.ControllerManager(), r.CP.Scheduler(), r.CP.Kwok()}
	ctx := context.WithoutCancel(t.Context())
	for _, component := range append(others, r.CP.APIServer(), r.CP.Etcd()) {
		if err := component.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(r.CP.Dir(), "etcd")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o700); err != nil { //nolint:gosec // G302: etcd wants its folder so
		t.Fatal(err)
	}
	for _, component := range append([]*controlplane.Component{r.CP.Etcd(), r.CP.APIServer()}, others...) {
		if err := component.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// F39: the API server is restarted, and lacks the groups of CRDs in its discovery for a moment, while a
// removal waits for a custom resource. That one stays listed, and goes in the end.
func TestF39APIServerRestartedDuringRemoval(t *testing.T) {
	releaseOnly(t)
	r := newRig(t)
	r.CP.RequireControl(t)
	namespace := r.Namespace(t)
	group := namespace + ".example.org"
	definitions := fstest.MapFS{"crd.yaml": {Data: []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`)}}
	r.Ready(t, r.Deploy(t, namespace, "definitions", r.Push(t, "f39-definitions:v1", definitions), nil))
	resource := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: " + group + "/v1\nkind: Gadget\nmetadata: {name: one, finalizers: [example.org/hold]}\n")}}
	key := r.Deploy(t, namespace, "app", r.Push(t, "f39:v1", resource), nil)
	r.Ready(t, key)
	gadget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Gadget"}}
	gadget.SetNamespace(namespace)
	gadget.SetName("one")
	if err := r.Admin.Delete(t.Context(), &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if err := r.CP.APIServer().Kill(); err != nil {
			t.Fatal(err)
		}
		if err := r.CP.APIServer().Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(3 * time.Second); time.Now().Before(until); { // while discovery is incomplete
			at := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, time.Now().Format(time.RFC3339Nano)))
			d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			if err := r.Admin.Patch(t.Context(), d, at); apierrors.IsNotFound(err) {
				t.Fatal("the deployment is gone before its custom resource")
			}
			if listed := d.Status.Inventory; listed != nil && listed.Count == 0 {
				t.Fatal("the custom resource was forgotten")
			}
		}
	}
	if err := r.Admin.Patch(t.Context(), gadget, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	r.Remove(t, key)
	if err := r.Admin.Get(t.Context(), client.ObjectKeyFromObject(gadget), gadget); !apierrors.IsNotFound(err) {
		t.Errorf("the custom resource is orphaned: %v", err)
	}
}
