// SPDX-License-Identifier: Apache-2.0

// Package crd brings the CustomResourceDefinitions of a registry+v1 bundle into the form of apiextensions.k8s.io/v1.
package crd

import (
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/shape"
)

// apiVersions of CustomResourceDefinitions.
const (
	V1      = "apiextensions.k8s.io/v1"
	V1beta1 = "apiextensions.k8s.io/v1beta1"
)

// crdShape leaves metadata and status to others: the former is trimmed already, the latter dropped.
var crdShape = shape.Of[apiextensions.CustomResourceDefinition]().Partial([]string{"metadata"}, []string{"status"})

// Read brings a CustomResourceDefinition into the form of v1 (P10, P11).
func Read(m manifest.Manifest) (manifest.Manifest, []manifest.Problem) {
	switch m.Object.GetAPIVersion() {
	case V1:
	case V1beta1:
		if problems := upgrade(m); len(problems) > 0 {
			return m, problems
		}
	default:
		return m, []manifest.Problem{m.Problem("P10", "the apiVersion is not one of a CustomResourceDefinition", "write it in "+V1)}
	}
	var problems []manifest.Problem
	for _, wrong := range shape.Fit(crdShape, m.Object.Object) {
		problems = append(problems, m.Problem("P10", wrong.String(), "correct the type"))
	}
	return m, problems
}

// Field is a string in the spec of a CRD; empty where it is missing.
func Field(crd manifest.Manifest, fields ...string) string {
	value, _, _ := unstructured.NestedString(crd.Object.Object, append([]string{"spec"}, fields...)...)
	return value
}
