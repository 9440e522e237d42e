// SPDX-License-Identifier: Apache-2.0

// Package schemas reads objects by the schemas of their kinds, which say how the API server merges their fields. It is pure.
package schemas

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// builtIn are the schemas of the built-in kinds. They are parsed when they are needed for the first time.
var builtIn = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// Knows tells whether a kind is built into Kubernetes.
func Knows(kind schema.GroupVersionKind) bool { return scheme.Scheme.Recognizes(kind) }

// Typed reads an object by the schema of its kind; one of a custom kind without a schema, so that its lists are atomic.
func Typed(object *unstructured.Unstructured) (*typed.TypedValue, error) {
	if Knows(object.GroupVersionKind()) {
		return builtIn().ObjectToTyped(object, typed.AllowDuplicates)
	}
	return typed.DeducedParseableType.FromUnstructured(object.Object, typed.AllowDuplicates)
}
