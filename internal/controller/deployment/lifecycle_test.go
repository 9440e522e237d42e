// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"testing"
	"testing/fstest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

func TestInstallUpgradePruneRemove(t *testing.T) {
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{
		"a.yaml": configMap("kept", "one"), "b.yaml": configMap("dropped", "one"), "c.yaml": workload("web", "example.org/web:1"),
	})
	key := r.deploy(t, namespace, "app", nil)
	d := r.ready(t, key, first.Revision)
	if d.Status.Objects.Applied != 3 || d.Status.Inventory.Count != 3 {
		t.Errorf("%d objects applied, %d in the inventory, want 3", d.Status.Objects.Applied, d.Status.Inventory.Count)
	}
	var web appsv1.Deployment
	if err := r.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &web); err != nil {
		t.Fatal(err)
	}
	if web.Labels[v1alpha1.DeploymentLabel] != "app" || web.Labels[v1alpha1.NamespaceLabel] != namespace {
		t.Errorf("labels %v do not name the owner", web.Labels)
	}

	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{
		"a.yaml": configMap("kept", "two"), "c.yaml": workload("web", "example.org/web:2"),
	})
	r.ready(t, key, second.Revision)
	r.eventually(t, t.Context(), "the dropped object is deleted", func(ctx context.Context) (bool, string) {
		value := r.value(t, ctx, namespace, "dropped")
		return value == "", value
	})
	if got := r.value(t, t.Context(), namespace, "kept"); got != "two" {
		t.Errorf("the kept object has %q, want the new value", got)
	}
	r.until(t, key, "two objects in the inventory", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Inventory.Count == 2 })

	r.remove(t, key)
	err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(&web), &web)
	if !apierrors.IsNotFound(err) {
		t.Errorf("the workload is still there after the removal (%v)", err)
	}
	if got := r.value(t, t.Context(), namespace, "kept"); got != "" {
		t.Errorf("a ConfigMap is still there after the removal")
	}
}

func TestDriftIsRepairedOnTheInterval(t *testing.T) {
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{
		"a.yaml": configMap("edited", "one"), "b.yaml": configMap("deleted", "one"), "c.yaml": configMap("untouched", "one"),
	})
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) { d.Spec.Interval = v1alpha1.Duration{Duration: 1e9} })
	r.ready(t, key, published.Revision)
	var untouched corev1.ConfigMap
	if err := r.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "untouched"}, &untouched); err != nil {
		t.Fatal(err)
	}

	edited := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edited"}}
	if err := r.admin.Patch(t.Context(), edited, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"drift"}}`))); err != nil {
		t.Fatal(err)
	}
	deleted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deleted"}}
	if err := r.admin.Delete(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	r.eventually(t, t.Context(), "both objects are as the bundle has them", func(ctx context.Context) (bool, string) {
		a, b := r.value(t, ctx, namespace, "edited"), r.value(t, ctx, namespace, "deleted")
		return a == "one" && b == "one", a + " " + b
	})
	version := untouched.ResourceVersion
	if err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(&untouched), &untouched); err != nil || untouched.ResourceVersion != version {
		t.Errorf("the object without drift was written (%v)", err)
	}
}

func TestLastRevisionIsKeptWhileUpgradeFails(t *testing.T) {
	r := newRig(t)
	namespace := r.namespace(t)
	good := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
		d.Spec.Interval, d.Spec.RetryInterval = v1alpha1.Duration{Duration: 1e9}, v1alpha1.Duration{Duration: 1e9}
	})
	r.ready(t, key, good.Revision)
	r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": file("kind: [broken")})
	d := r.unready(t, key, v1alpha1.ReasonConversionFailed)
	if d.Status.Applied.Revision != good.Revision {
		t.Errorf("last applied is %s, want the good revision %s", d.Status.Applied.Revision, good.Revision)
	}
	if err := r.admin.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	r.eventually(t, t.Context(), "the object of the good revision is back", func(ctx context.Context) (bool, string) {
		value := r.value(t, ctx, namespace, "a")
		return value == "one", value
	})
	third := r.publish(t, namespace, "app", "v3", fstest.MapFS{"a.yaml": configMap("a", "three")})
	r.ready(t, key, third.Revision)
}
