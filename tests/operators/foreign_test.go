// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert"
)

// foreignKinds are those that a bundle has objects of, or says that it requires, and that neither it nor the cluster
// defines, sorted.
func (r *rig) foreignKinds(t *testing.T, rendered convert.Result) []schema.GroupVersionKind {
	t.Helper()
	defined := map[schema.GroupKind]bool{}
	wanted := map[schema.GroupVersionKind]bool{}
	for _, object := range rendered.Objects {
		wanted[object.GroupVersionKind()] = true
		if object.GetKind() == "CustomResourceDefinition" {
			group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
			defined[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	for _, requirement := range rendered.Requirements {
		if requirement.GVK.Kind != "" {
			wanted[requirement.GVK] = true
		}
	}
	maps.DeleteFunc(wanted, func(kind schema.GroupVersionKind, _ bool) bool {
		return defined[kind.GroupKind()] || r.serves(t, kind)
	})
	return slices.SortedFunc(maps.Keys(wanted), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	})
}

// serves tells whether the API server knows a kind.
func (r *rig) serves(t *testing.T, kind schema.GroupVersionKind) bool {
	t.Helper()
	list, err := r.discovery.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list.APIResources, func(resource metav1.APIResource) bool { return resource.Kind == kind.Kind })
}

// provide creates the CRD of a kind, with fields of any name, as its provider would. It stays for the operators that follow,
// until forgetProvided; those that bring it themselves, argocd-operator and prometheus, come before them in the corpus.
func (r *rig) provide(t *testing.T, kind schema.GroupVersionKind) {
	t.Helper()
	singular := strings.ToLower(kind.Kind)
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + kind.Group}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: singular + "s", Kind: kind.Kind, ListKind: kind.Kind + "List", Singular: singular},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: kind.Version, Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: new(true),
			}}}},
	}
	if err := r.admin.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	r.eventually(t, t.Context(), kind.String()+" is served", func(context.Context) (bool, string) { return r.serves(t, kind), "not yet" })
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind(crdKind)
	definition.SetName(crd.Name)
	r.provided = append(r.provided, definition)
}

// forgetProvided deletes the CRDs of provide, which bundles of later tests bring themselves.
func (r *rig) forgetProvided(t *testing.T) {
	t.Helper()
	r.forget(t, r.provided)
	r.provided = nil
}
