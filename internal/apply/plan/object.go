// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/base64"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
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
	InstallNamespace string       // for namespaced objects that carry no namespace
	HashKey          []byte       // see inventory.HashRendered; may be empty
	Ignore           ignore.Rules // fields that other managers may change
}

// Complete copies an object and completes it for applying: its namespace is
// filled in, or dropped when the kind is cluster-scoped, the owner's labels are set,
// stringData is folded into data (the API server records only data as ours), and
// the fields that only an API server writes are removed.
func (c Completion) Complete(object *unstructured.Unstructured, kind Kind) (Object, error) {
	desired := object.DeepCopy()
	dropServerFields(desired)
	switch {
	case !kind.Namespaced:
		desired.SetNamespace("")
	case desired.GetNamespace() == "":
		desired.SetNamespace(c.InstallNamespace)
	}
	id := inventory.IDOf(desired)
	if err := foldStringData(desired); err != nil {
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
	bare, some := ignore.Without(desired, given)
	if !some {
		given = nil
	}
	rendered, err := inventory.HashRendered(bare, c.HashKey)
	if err != nil {
		return Object{}, err
	}
	return Object{ID: id, Kind: kind, Desired: desired, Rendered: rendered, Phase: phase, Given: given}, nil
}

// dropServerFields removes status and the metadata that the API server fills in.
func dropServerFields(object *unstructured.Unstructured) {
	delete(object.Object, "status")
	metadata, _ := object.Object["metadata"].(map[string]any)
	for _, field := range []string{
		"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generateName",
		"generation", "managedFields", "resourceVersion", "selfLink", "uid",
	} {
		delete(metadata, field)
	}
	dropNullTimestamps(object.Object)
}

// dropNullTimestamps removes the `creationTimestamp: null` that generators
// leave in templates: a null is nothing to own.
func dropNullTimestamps(value any) {
	switch value := value.(type) {
	case map[string]any:
		if stamp, found := value["creationTimestamp"]; found && stamp == nil {
			delete(value, "creationTimestamp")
		}
		for _, child := range value {
			dropNullTimestamps(child)
		}
	case []any:
		for _, child := range value {
			dropNullTimestamps(child)
		}
	}
}

// foldStringData changes a Secret as the API server does on every write.
// Errors name keys, never values.
func foldStringData(object *unstructured.Unstructured) error {
	plain, found := object.Object["stringData"]
	if !found || !digest.IsSecret(inventory.IDOf(object)) {
		return nil
	}
	delete(object.Object, "stringData")
	entries, ok := plain.(map[string]any)
	if !ok && plain != nil {
		return fmt.Errorf("stringData is not a map")
	}
	if len(entries) == 0 {
		return nil
	}
	data, ok := object.Object["data"].(map[string]any)
	if !ok {
		data = map[string]any{}
		object.Object["data"] = data
	}
	for key, value := range entries {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("stringData.%s is not a string: quote it", key)
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return nil
}

// KindOf returns how the CRD will serve a version; false when it does not.
func KindOf(d crds.Definition, version string) (Kind, bool) {
	return Kind{
		Resource:   schema.GroupVersionResource{Group: d.Group, Version: version, Resource: d.Plural},
		Namespaced: d.Namespaced,
		Definition: d.Name,
	}, slices.Contains(d.Served, version)
}
