// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/content"
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
	// Phase in which it is applied: see AnnotationPhase.
	Phase int
	// Rank orders the objects of a stage in a phase: lower ones are applied before.
	Rank int
}

// Completion are the settings for completing the objects of a bundle.
type Completion struct {
	Owner            inventory.Owner
	InstallNamespace string            // for namespaced objects that carry no namespace
	Hasher           *inventory.Hasher // without one the result has no hash
	Ignore           ignore.Rules      // fields that other managers may change
}

// Complete completes an object for applying: its namespace is filled in, or dropped when the kind is cluster-scoped, the owner's
// labels are set, stringData is folded into data (the API server records only data as ours), and the fields that only an API
// server writes are removed. The result shares with the object the values that are the same, so neither may be changed afterwards.
func (c Completion) Complete(object *unstructured.Unstructured, kind Kind) (Object, error) {
	desired := content.WithoutServerFields(object)
	switch {
	case !kind.Namespaced:
		desired.SetNamespace("")
	case desired.GetNamespace() == "":
		desired.SetNamespace(c.InstallNamespace)
	}
	id := inventory.IDOf(desired)
	if err := content.FoldStringData(desired); err != nil {
		return Object{}, fmt.Errorf("completing %s: %w", id, err)
	}
	labels := desired.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for name, value := range c.Owner.Labels() {
		labels[name] = value
	}
	desired.SetLabels(labels)
	phase, err := phaseOf(desired)
	if err != nil {
		return Object{}, fmt.Errorf("completing %s: %w", id, err)
	}
	given, err := c.Ignore.Of(desired)
	if err != nil {
		return Object{}, err
	}
	if len(desired.GetFinalizers()) > 0 {
		given = append(given, ignore.Pointer{"metadata", "finalizers"}) // a controller removes its own when its work is done
	}
	bare, some := ignore.Without(desired, given)
	if !some {
		given = nil
	}
	var rendered inventory.Hash
	if c.Hasher != nil {
		if rendered, err = c.Hasher.Rendered(bare); err != nil {
			return Object{}, err
		}
	}
	return Object{ID: id, Kind: kind, Desired: desired, Rendered: rendered, Phase: phase, Given: given}, nil
}

// KindOf returns how the CRD will serve a version; false when it does not.
func KindOf(d crds.Definition, version string) (Kind, bool) {
	return Kind{
		Resource:   schema.GroupVersionResource{Group: d.Group, Version: version, Resource: d.Plural},
		Namespaced: d.Namespaced,
		Definition: d.Name,
	}, slices.Contains(d.Served, version)
}
