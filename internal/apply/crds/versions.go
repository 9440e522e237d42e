// SPDX-License-Identifier: Apache-2.0

package crds

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// ServedVersions are the versions that a CRD serves.
func ServedVersions(crd *unstructured.Unstructured) []string {
	var served []string
	for _, version := range versionsOf(crd) {
		if isServed(version) {
			served = append(served, nameOf(version))
		}
	}
	return served
}

func isServed(version map[string]any) bool {
	served, _ := version["served"].(bool)
	return served
}

func nameOf(version map[string]any) string {
	name, _ := version["name"].(string)
	return name
}

// versionsOf are the versions of a CRD, without a copy.
func versionsOf(crd *unstructured.Unstructured) []map[string]any {
	raw, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	list, _ := raw.([]any)
	versions := make([]map[string]any, 0, len(list))
	for _, version := range list {
		if fields, is := version.(map[string]any); is {
			versions = append(versions, fields)
		}
	}
	return versions
}
