// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
)

// Kind describes how the API server serves a kind.
type Kind struct {
	Resource   schema.GroupVersionResource
	Namespaced bool
	// Definition is the name of the CRD of the same bundle or inventory that
	// defines the kind; empty for other kinds.
	Definition string
}

// Object is a desired object, complete: as it will be applied.
type Object struct {
	inventory.ID
	Kind
	Desired  *unstructured.Unstructured
	Rendered inventory.Hash // without the ignored fields
	// Given are ignored fields: they are applied when the object is created, and not afterwards.
	Given []ignore.Pointer
	// Ignored are the ignored fields, whether the object has them or not.
	Ignored []ignore.Pointer
	// Phase in which it is applied: see AnnotationPhase.
	Phase int
	// Rank orders the objects of a stage in a phase: lower ones are applied before.
	Rank int
}

// KindOf returns how the CRD will serve a version; false when it does not.
func KindOf(d crds.Definition, version string) (Kind, bool) {
	return Kind{
		Resource:   schema.GroupVersionResource{Group: d.Group, Version: version, Resource: d.Plural},
		Namespaced: d.Namespaced,
		Definition: d.Name,
	}, slices.Contains(d.Served, version)
}
