// SPDX-License-Identifier: Apache-2.0

// Package content brings an object of a bundle into the form that is applied: without what only an API server writes. It is pure.
package content

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
)

// WithoutServerFields is an object without status and the metadata that the API server fills in. Its fields and its metadata are
// copies; deeper values are those of the object.
func WithoutServerFields(object *unstructured.Unstructured) *unstructured.Unstructured {
	if hasNullTimestamp(object.Object) {
		object = object.DeepCopy()
		dropNullTimestamps(object.Object)
	}
	bare := maps.Clone(object.Object)
	delete(bare, "status")
	if metadata, ok := bare["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range serverFields {
			delete(metadata, field)
		}
		bare["metadata"] = metadata
	}
	return &unstructured.Unstructured{Object: bare}
}

var serverFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generateName",
	"generation", "managedFields", "resourceVersion", "selfLink", "uid",
}

// hasNullTimestamp tells whether dropNullTimestamps would remove anything.
func hasNullTimestamp(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		if stamp, found := value["creationTimestamp"]; found && stamp == nil {
			return true
		}
		for _, child := range value {
			if hasNullTimestamp(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, hasNullTimestamp)
	}
	return false
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

// FoldStringData changes a Secret as the API server does on every write. Its data is replaced by a copy.
// Errors name keys, never values.
func FoldStringData(object *unstructured.Unstructured) error {
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
	if ok {
		data = maps.Clone(data)
	} else {
		data = map[string]any{}
	}
	object.Object["data"] = data
	for key, value := range entries {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("stringData.%s is not a string: quote it", key)
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return nil
}
