// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// TestSampleHello applies config/samples as README says: the bundle becomes Ready without a registry or a Git server, and
// deleting its folder removes its objects, because the ServiceAccount is in another folder.
func TestSampleHello(t *testing.T) {
	r := newRig(t)
	permissions, bundle := sample(t, "permissions"), sample(t, "hello")
	t.Cleanup(func() { r.removeSample(t, permissions) })
	for _, o := range append(permissions, bundle...) {
		if err := r.Admin.Create(t.Context(), o); err != nil {
			t.Fatalf("%s %s: %v", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
	}
	key := client.ObjectKey{Namespace: "samples", Name: "hello"}
	r.Ready(t, key)
	r.removeSample(t, bundle)
	r.satchel(t, "samples", "wait", "hello", "--for", "deleted", "--timeout", "60s").says(t, 0)
	for _, left := range []client.Object{&corev1.ConfigMap{}, &corev1.Service{}} {
		if err := r.Admin.Get(t.Context(), key, left); !apierrors.IsNotFound(err) {
			t.Errorf("%T hello is left: %v", left, err)
		}
	}
	if err := r.Admin.Get(t.Context(), client.ObjectKey{Namespace: "samples", Name: "hello-installer"}, &corev1.ServiceAccount{}); err != nil {
		t.Errorf("the ServiceAccount is gone with the folder of the bundle: %v", err)
	}
}

// sample are the objects of a folder of config/samples.
func sample(t *testing.T, folder string) []client.Object {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../config/samples/"+folder)
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, resource := range resources.Resources() {
		fields, err := resource.Map()
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: fields})
	}
	return objects
}

func (r *rig) removeSample(t *testing.T, objects []client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := r.Admin.Delete(context.WithoutCancel(t.Context()), o); client.IgnoreNotFound(err) != nil {
			t.Errorf("%s: %v", o.GetName(), err)
		}
	}
}
