// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is where CRDs are.
var Resource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Established tells whether the conditions of a CRD report that its resources are served.
func Established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["type"] == "Established" && fields["status"] == "True" {
			return true
		}
	}
	return false
}

// Versions are the version of storage of a CRD, and one that is served: that of
// storage if it can be, "" when there is none.
func Versions(crd *unstructured.Unstructured) (storage, served string) {
	for _, version := range versionsOf(crd) {
		isStorage, _ := version["storage"].(bool)
		if isStorage {
			storage = nameOf(version)
		}
		if isServed(version) && (served == "" || isStorage) {
			served = nameOf(version)
		}
	}
	return storage, served
}

// ConvertsByWebhook tells whether the CRD converts its resources by a webhook.
func ConvertsByWebhook(crd *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	return strategy == "Webhook"
}

// Resources says how the resources of a CRD are served; without a version when they are not.
func Resources(crd *unstructured.Unstructured) schema.GroupVersionResource {
	_, served := Versions(crd)
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	return schema.GroupVersionResource{Group: group, Version: served, Resource: plural}
}

// Finalizers are those that only a controller removes, of a resource's finalizers; the others are of the API server.
func Finalizers(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
}
