// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/tests/installation"
	"github.com/satchel-dev/satchel/tests/kustomizer"
)

// BenchmarkBesideFlux installs the same ConfigMaps by a bare loop, by Satchel and by Flux's kustomize-controller with its
// defaults, compares them when nothing changed, and upgrades one in a hundred. Both apply as a ServiceAccount.
func BenchmarkBesideFlux(b *testing.B) {
	if os.Getenv("SATCHEL_FULL") == "" {
		b.Skip("building Flux's controller takes minutes and is for the release suite: SATCHEL_FULL=1")
	}
	r := newRig(b)
	flux := r.flux(b)
	const n = 1000
	for range b.N {
		own, other := measureOne(b, r, n), flux.measureFlux(b, n)
		rows := slices.Concat([]row{own.bare}, []row{own.install, own.rest, own.upgrade}, other)
		printTable(b, fmt.Sprintf("%d ConfigMaps, Satchel beside kustomize-controller", n), rows)
		for i, what := range []string{"install", "again", "change"} {
			ours := []row{own.install, own.rest, own.upgrade}[i]
			b.ReportMetric(ours.cpu, "cpu-s-"+what)
			b.ReportMetric(other[i].cpu, "flux-cpu-s-"+what)
			b.ReportMetric(float64(ours.requests.all()), "requests-"+what)
			b.ReportMetric(float64(other[i].requests.all()), "flux-requests-"+what)
		}
	}
}

// flux starts kustomize-controller on the control plane of the rig, and returns a rig that measures it.
func (r *rig) flux(b *testing.B) *rig {
	b.Helper()
	built, err := kustomizer.Build(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := built.InstallKinds(b.Context(), r.cp.RESTConfig()); err != nil {
		b.Fatal(err)
	}
	const name = "kustomize-controller"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kustomizer.Namespace}}
	if err := client.IgnoreAlreadyExists(r.admin.Create(b.Context(), namespace)); err != nil {
		b.Fatal(err)
	}
	if err := installation.Admin(b.Context(), r.admin, kustomizer.Namespace, name); err != nil {
		b.Fatal(err)
	}
	config, err := installation.AccountConfig(b.Context(), r.cp.RESTConfig(), kustomizer.Namespace, name)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(config, kubeconfig); err != nil {
		b.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	flux := *r
	flux.profiles = "" // they are not its own
	if flux.controller, err = built.Start(ctx, kubeconfig, log); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cancel()
		_ = flux.controller.Wait() // it was interrupted
		if text, err := os.ReadFile(log.Name()); err == nil && b.Failed() {
			b.Logf("%s", text[max(0, len(text)-5000):])
		}
	})
	flux.user = "system:serviceaccount:" + kustomizer.Namespace + ":" + name
	return &flux
}

// measureFlux does with a Kustomization what measureOne does with a BundleDeployment, up to the first upgrade.
func (r *rig) measureFlux(b *testing.B, n int) []row {
	b.Helper()
	namespace := r.namespace(b)
	files, _ := manyMaps(n, nil)
	changed, _ := manyMaps(n, func(i int) bool { return i%100 == 0 })
	first, err := r.Publish(b.Context(), namespace, "app", "v1", files)
	if err != nil {
		b.Fatal(err)
	}
	external := &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}}
	if err := r.admin.Create(b.Context(), external); err != nil {
		b.Fatal(err)
	}
	r.show(b, external, first)
	install := r.measure(b, "Kustomization, from create to Ready", func() {
		if err := r.admin.Create(b.Context(), kustomization(namespace)); err != nil {
			b.Fatal(err)
		}
		r.waitApplied(b, namespace, first.Revision, "")
	})
	again := r.measure(b, "Kustomization, nothing changed", func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+meta.ReconcileRequestAnnotation+`":"again"}}}`))
		if err := r.admin.Patch(b.Context(), kustomization(namespace), patch); err != nil {
			b.Fatal(err)
		}
		r.waitApplied(b, namespace, first.Revision, "again")
	})
	second, err := r.Publish(b.Context(), namespace, "app", "v2", changed)
	if err != nil {
		b.Fatal(err)
	}
	upgrade := r.measure(b, "Kustomization, 1 % changed", func() {
		r.show(b, external, second)
		r.waitApplied(b, namespace, second.Revision, "again")
	})
	if err := r.admin.Delete(b.Context(), kustomization(namespace)); err != nil {
		b.Fatal(err)
	}
	return []row{install, again, upgrade}
}

var kustomizationKind = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}

// kustomization applies the ExternalArtifact of its name as the ServiceAccount installer.
func kustomization(namespace string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"interval": "1h", "timeout": "15m", "prune": true, "wait": true, "path": "./", "targetNamespace": namespace, "serviceAccountName": "installer",
		"sourceRef": map[string]any{"kind": sourcev1.ExternalArtifactKind, "name": "app"},
	}}}
	object.SetGroupVersionKind(kustomizationKind)
	object.SetNamespace(namespace)
	object.SetName("app")
	return object
}

// show makes an artifact the one of an ExternalArtifact, as the source controller does.
func (r *rig) show(b *testing.B, external *sourcev1.ExternalArtifact, artifact meta.Artifact) {
	b.Helper()
	external.Status.Artifact = &artifact
	external.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason, LastTransitionTime: metav1.Now()}}
	if err := r.admin.Status().Update(b.Context(), external); err != nil {
		b.Fatal(err)
	}
}

// waitApplied waits until the Kustomization is Ready with a revision, and has handled a request.
func (r *rig) waitApplied(b *testing.B, namespace, revision, request string) {
	b.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kustomizationKind)
	r.follow(b, list, namespace, 1, func(o client.Object) bool {
		object, ok := o.(*unstructured.Unstructured)
		if !ok {
			return false
		}
		text := func(field string) string {
			value, _, _ := unstructured.NestedString(object.Object, "status", field)
			return value
		}
		return text("lastAppliedRevision") == revision && text("lastHandledReconcileAt") == request && conditions.IsTrue(conditions.UnstructuredGetter(object), meta.ReadyCondition)
	})
}
