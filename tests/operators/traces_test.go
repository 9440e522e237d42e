// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const crdKind = "CustomResourceDefinition"

// state lists what there is of the kinds of some objects, and of what operators' Deployments, roles and certificates leave
// in a namespace: "kind namespace/name". CRDs are left out, they stay by policy.
func (r *rig) state(ctx context.Context, t *testing.T, namespace string, objects []*unstructured.Unstructured) map[string]bool {
	t.Helper()
	kinds := map[schema.GroupVersionKind]bool{}
	for _, kind := range []string{"Secret", "Pod", "ConfigMap"} {
		kinds[corev1.SchemeGroupVersion.WithKind(kind)] = true
	}
	for _, kind := range []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"} {
		kinds[rbacv1.SchemeGroupVersion.WithKind(kind)] = true
	}
	for _, object := range objects {
		kinds[object.GroupVersionKind()] = object.GetKind() != crdKind
	}
	found := map[string]bool{}
	for kind, wanted := range kinds {
		if !wanted {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := r.admin.List(ctx, list); err != nil && !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err) {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			granted := strings.HasPrefix(item.Name, "satchel:") // by the test
			if (item.Namespace == "" || item.Namespace == namespace) && !granted {
				found[kind.Kind+" "+item.Namespace+"/"+item.Name] = true
			}
		}
	}
	return found
}

// checkRestored waits until the state is what it was before.
func (r *rig) checkRestored(t *testing.T, before map[string]bool, namespace string, objects []*unstructured.Unstructured) {
	t.Helper()
	r.eventually(t, t.Context(), "the state is what it was before", func(ctx context.Context) (bool, string) {
		var differing []string
		after := r.state(ctx, t, namespace, objects)
		for _, key := range slices.Sorted(maps.Keys(after)) {
			if !before[key] {
				differing = append(differing, "+ "+key)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(before)) {
			if !after[key] {
				differing = append(differing, "- "+key)
			}
		}
		return len(differing) == 0, strings.Join(differing, "\n")
	})
}

// checkDefinitions makes sure that each CRD is kept, with the orphaned annotation, and lists in every version. Where a webhook converted one of
// them, objects are written of it, and the namespace with them still goes.
func (d *deployment) checkDefinitions(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	converted := false
	for _, object := range objects {
		if object.GetKind() != crdKind {
			continue
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := d.admin.Get(t.Context(), client.ObjectKeyFromObject(object), &crd); err != nil {
			t.Errorf("CRD %s was not kept: %v", object.GetName(), err)
			continue
		}
		if crd.Annotations[v1alpha1.OrphanedAnnotation] == "" {
			t.Errorf("CRD %s is kept without the orphaned annotation", crd.Name)
		}
		if strategy, _, _ := unstructured.NestedString(object.Object, "spec", "conversion", "strategy"); strategy == "Webhook" {
			converted = true
			d.writeEmpty(t, &crd)
		}
		d.checkLists(t, &crd)
	}
	if converted {
		d.checkNamespaceGoes(t)
	}
}

// writeEmpty writes an object of a kind in the version that is stored, unless its schema demands more than a name.
func (d *deployment) writeEmpty(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, version := range crd.Spec.Versions {
		if !version.Storage || crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
			continue
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind})
		object.SetNamespace(d.namespace)
		object.SetName("left-behind")
		if err := d.admin.Create(t.Context(), object); err != nil && !apierrors.IsInvalid(err) {
			t.Errorf("writing a %s: %v", object.GroupVersionKind(), err)
		}
	}
}

// checkLists lists a kind in every version that is served.
func (d *deployment) checkLists(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.ListKind})
		if err := d.admin.List(t.Context(), list); err != nil {
			t.Errorf("listing %s in %s: %v", crd.Name, version.Name, err)
		}
	}
}

// checkNamespaceGoes deletes the namespace, which takes that every kind in it can be listed and deleted.
func (d *deployment) checkNamespaceGoes(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}}
	if err := d.admin.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	d.eventually(t, t.Context(), "the namespace is gone", func(ctx context.Context) (bool, string) {
		err := d.admin.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return apierrors.IsNotFound(err), namespace.Status.String()
	})
}

// forget deletes the kept CRDs and waits until they are gone, so that the API server does not grow.
func (r *rig) forget(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	var crds []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == crdKind {
			crds = append(crds, object)
			if err := client.IgnoreNotFound(r.admin.Delete(t.Context(), object.DeepCopy())); err != nil {
				t.Error(err)
			}
		}
	}
	for _, crd := range crds {
		r.eventually(t, t.Context(), "CRD "+crd.GetName()+" is gone", func(ctx context.Context) (bool, string) {
			err := r.admin.Get(ctx, client.ObjectKeyFromObject(crd), crd.DeepCopy())
			return apierrors.IsNotFound(err), "it is still there"
		})
	}
}
