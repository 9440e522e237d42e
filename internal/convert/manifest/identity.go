// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Identity returns what keeps a manifest from being an object with a fixed identity: apiVersion, kind, name.
func Identity(m Manifest) []Problem {
	var problems []Problem
	add := func(message, remedy string) {
		problems = append(problems, m.Problem(RuleIdentity, message, remedy))
	}
	if m.Object.GetKind() == "" {
		add("the object has no kind", "add it, or remove the document if it is no manifest")
	}
	version := m.Object.GetAPIVersion()
	if version == "" {
		add("the object has no apiVersion", "add it")
	} else if _, err := schema.ParseGroupVersion(version); err != nil {
		add("the apiVersion is not of the form group/version", "correct it")
	}
	if _, ok := m.Object.Object["metadata"].(map[string]any); !ok && m.Object.Object["metadata"] != nil {
		add("metadata is not a mapping", "correct it")
	}
	if m.Object.GetName() == "" {
		add(nameless(m.Object))
	}
	return problems
}

func nameless(object *unstructured.Unstructured) (message, remedy string) {
	if object.GetGenerateName() != "" {
		return "generateName would create another object at each apply", "give the object a fixed metadata.name"
	}
	return "the object has no metadata.name", "add it"
}

// ID tells objects apart, whatever the version of their group.
type ID struct {
	schema.GroupKind
	Namespace, Name string
}

// IDOf returns the identity of an object.
func IDOf(object *unstructured.Unstructured) ID {
	return ID{GroupKind: object.GroupVersionKind().GroupKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Skipped is the warning about files that were left out.
func Skipped(names []string) string {
	const shown = 5
	listed := strings.Join(names[:min(shown, len(names))], ", ")
	if more := len(names) - shown; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return "not manifests by name (.yaml, .yml, .json), left out: " + listed
}
