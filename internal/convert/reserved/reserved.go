// SPDX-License-Identifier: Apache-2.0

// Package reserved drops from objects the fields that the control plane writes: an apply of them is undone by a controller, and
// counts as drift again and again. It is pure.
package reserved

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// field is one that the control plane owns in objects of a kind.
type field struct {
	kind string // group and kind
	path []string
	// when the field is the control plane's; nil: always.
	when  func(object map[string]any) bool
	owner string
}

// fields lists what controllers of Kubernetes write into objects that users write as well. The status, and the metadata that an API
// server fills in, are dropped from all objects elsewhere.
var fields = slices.Concat(
	[]field{
		{"rbac.authorization.k8s.io/ClusterRole", []string{"rules"}, aggregates, "the control plane fills it in from the ClusterRoles that aggregationRule selects"},
		{"/Namespace", []string{"metadata", "labels", "kubernetes.io/metadata.name"}, nil, "the API server sets it"},
		{"/Namespace", []string{"spec", "finalizers"}, nil, "the API server sets it"},
		{"/PersistentVolume", []string{"spec", "claimRef", "uid"}, nil, "the volume controller sets it"},
		{"/PersistentVolume", []string{"spec", "claimRef", "resourceVersion"}, nil, "the volume controller sets it"},
		{"/PersistentVolume", []string{"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"}, nil, "the volume controller sets it"},
		{"apps/DaemonSet", []string{"metadata", "annotations", "deprecated.daemonset.template.generation"}, nil, "the DaemonSet controller sets it"},
		{"/Endpoints", []string{"metadata", "annotations", "endpoints.kubernetes.io/last-change-trigger-time"}, nil, "the endpoints controller sets it"},
		{"/ServiceAccount", []string{"metadata", "annotations", "kubernetes.io/enforce-mountable-secrets-uid"}, nil, "the token controller sets it"},
	},
	annotations("apps/Deployment", "the Deployment controller sets it", "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"),
	annotations("apps/ReplicaSet", "the Deployment controller sets it",
		"deployment.kubernetes.io/revision", "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas", "deployment.kubernetes.io/revision-history"),
	annotations("/PersistentVolumeClaim", "the volume controller sets it",
		"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "volume.kubernetes.io/selected-node",
		"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"),
)

func annotations(kind, owner string, names ...string) []field {
	list := make([]field, 0, len(names))
	for _, name := range names {
		list = append(list, field{kind, []string{"metadata", "annotations", name}, nil, owner})
	}
	return list
}

func aggregates(role map[string]any) bool {
	selectors, _, _ := unstructured.NestedSlice(role, "aggregationRule", "clusterRoleSelectors")
	return len(selectors) > 0
}

// Drop removes such fields from an object, and says which.
func Drop(object *unstructured.Unstructured) (warnings []string) {
	kind := object.GroupVersionKind()
	for _, f := range fields {
		if f.kind != kind.Group+"/"+kind.Kind || f.when != nil && !f.when(object.Object) {
			continue
		}
		if _, found, err := unstructured.NestedFieldNoCopy(object.Object, f.path...); err != nil || !found {
			continue
		}
		unstructured.RemoveNestedField(object.Object, f.path...)
		if above := f.path[:len(f.path)-1]; len(above) > 0 {
			if left, _, _ := unstructured.NestedMap(object.Object, above...); len(left) == 0 {
				unstructured.RemoveNestedField(object.Object, above...)
			}
		}
		warnings = append(warnings, strings.Join(f.path, ".")+" is left out, because "+f.owner)
	}
	return warnings
}
