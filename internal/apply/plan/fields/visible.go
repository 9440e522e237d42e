// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// secret is a value that may be compared with another one and is never returned.
type secret struct{ value string }

// visible copies the parts of an object that are worth comparing: neither its status nor the
// metadata that an API server writes.
func visible(object *unstructured.Unstructured) any {
	if object == nil {
		return nil
	}
	copied := map[string]any{}
	for name, value := range object.Object {
		if name != "status" {
			copied[name] = value
		}
	}
	metadata, _ := copied["metadata"].(map[string]any)
	kept := map[string]any{}
	for name, value := range metadata {
		if !served[name] {
			kept[name] = value
		}
	}
	copied["metadata"] = kept
	return hide(copied)
}

// served is the metadata that an API server writes.
var served = map[string]bool{
	"creationTimestamp": true, "deletionGracePeriodSeconds": true, "deletionTimestamp": true, "generation": true,
	"managedFields": true, "resourceVersion": true, "selfLink": true, "uid": true,
}

// hide copies a value and replaces the hidden values in it by a secret.
func hide(value any) any {
	switch value := value.(type) {
	case map[string]any:
		hidden := make(map[string]any, len(value))
		for name, field := range value {
			hidden[name] = hide(field)
		}
		hideIn(hidden)
		return hidden
	case []any:
		hidden := make([]any, 0, len(value))
		for _, item := range value {
			hidden = append(hidden, hide(item))
		}
		return hidden
	}
	return value
}

// hideIn hides the contents of a Secret, also one within another object, and copies of
// whole objects in annotations.
func hideIn(object map[string]any) {
	isSecret := object["kind"] == "Secret" && object["apiVersion"] == "v1"
	if isSecret {
		for _, name := range []string{"data", "stringData"} {
			if value, found := object[name]; found {
				object[name] = allHidden(value)
			}
		}
	}
	metadata, _ := object["metadata"].(map[string]any)
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return
	}
	for name, value := range annotations {
		if isSecret || copies(name) {
			annotations[name] = allHidden(value)
		}
	}
}

// copies tells that an annotation holds a copy of the object, or of its applied configuration.
func copies(annotation string) bool {
	return strings.Contains(annotation, "last-applied") || strings.HasPrefix(annotation, "kapp.k14s.io/original")
}

func allHidden(value any) any {
	switch value := value.(type) {
	case map[string]any:
		hidden := make(map[string]any, len(value))
		for name, field := range value {
			hidden[name] = allHidden(field)
		}
		return hidden
	case []any:
		hidden := make([]any, 0, len(value))
		for _, item := range value {
			hidden = append(hidden, allHidden(item))
		}
		return hidden
	case string:
		return secret{value}
	case nil:
		return nil
	}
	return secret{fmt.Sprint(value)}
}

// shown replaces secrets by their placeholders.
func shown(value any) any {
	switch value := value.(type) {
	case map[string]any:
		list := make(map[string]any, len(value))
		for name, field := range value {
			list[name] = shown(field)
		}
		return list
	case []any:
		list := make([]any, 0, len(value))
		for _, item := range value {
			list = append(list, shown(item))
		}
		return list
	case secret:
		return Hidden
	}
	return value
}
