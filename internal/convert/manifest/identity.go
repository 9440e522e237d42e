// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Identities is Identity of all.
func Identities(manifests []Manifest) []Problem {
	var problems []Problem
	for _, m := range manifests {
		problems = append(problems, Identity(m)...)
	}
	return problems
}

// Identity returns what keeps a manifest from being an object with a fixed identity: apiVersion, kind, name. Each of them,
// and the namespace, becomes part of a request's path, so each must be what an API server could accept there.
func Identity(m Manifest) []Problem {
	var problems []Problem
	add := func(message, remedy string) {
		if message != "" {
			problems = append(problems, m.Problem(RuleIdentity, message, remedy))
		}
	}
	add(wrongKind(m.Object))
	add(wrongVersion(m.Object))
	metadata, ok := m.Object.Object["metadata"].(map[string]any)
	if !ok && m.Object.Object["metadata"] != nil {
		add("metadata is not a mapping", "correct it")
	}
	add(wrongName(m.Object, metadata))
	add(wrongNamespace(metadata))
	return problems
}

func wrongKind(object *unstructured.Unstructured) (message, remedy string) {
	kind := object.GetKind()
	switch {
	case notText(object.Object["kind"]):
		return misread("kind", object.Object["kind"])
	case kind == "":
		return "the object has no kind", "add it, or remove the document if it is no manifest"
	case len(kind) > longestName || strings.ContainsFunc(kind, notAlphanumeric):
		return "the kind is not made of letters and digits", "correct it"
	}
	return "", ""
}

func notAlphanumeric(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}

func wrongVersion(object *unstructured.Unstructured) (message, remedy string) {
	written := object.GetAPIVersion()
	if notText(object.Object["apiVersion"]) {
		return misread("apiVersion", object.Object["apiVersion"])
	}
	if written == "" {
		return "the object has no apiVersion", "add it"
	}
	version, err := schema.ParseGroupVersion(written)
	switch {
	case err != nil || strings.HasPrefix(written, "/"):
		return "the apiVersion is not of the form group/version", "correct it"
	case version.Group != "" && len(validation.IsDNS1123Subdomain(version.Group)) > 0:
		return "the group of the apiVersion is not a DNS name", "correct it"
	case len(validation.IsDNS1035Label(version.Version)) > 0:
		return "the version of the apiVersion is not a DNS label that begins with a letter", "correct it"
	}
	return "", ""
}

// longestName is the API server's limit for names of every kind.
const longestName = 253

func wrongName(object *unstructured.Unstructured, metadata map[string]any) (message, remedy string) {
	name := object.GetName()
	switch {
	case notText(metadata["name"]):
		return misread("metadata.name", metadata["name"])
	case name == "" && object.GetGenerateName() != "":
		return "generateName would create another object at each apply", "give the object a fixed metadata.name"
	case name == "":
		return "the object has no metadata.name", "add it"
	case len(name) > longestName:
		return fmt.Sprintf("metadata.name is longer than %d bytes", longestName), "shorten it"
	case len(content.IsPathSegmentName(name)) > 0 || strings.ContainsFunc(name, unicode.IsControl):
		return "metadata.name is . or .., or contains a slash, a per cent sign or a control character", "choose a name that no request's path could be led astray by"
	}
	return "", ""
}

func wrongNamespace(metadata map[string]any) (message, remedy string) {
	if notText(metadata["namespace"]) {
		return misread("metadata.namespace", metadata["namespace"])
	}
	namespace, _ := metadata["namespace"].(string)
	if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		return "metadata.namespace is not a DNS label (at most 63 lower-case letters, digits and dashes)", "correct it"
	}
	return "", ""
}

// ValidNamespace tells whether a metadata.namespace is one that an object could have; a missing one is.
func ValidNamespace(value any) bool {
	message, _ := wrongNamespace(map[string]any{"namespace": value})
	return message == ""
}

func notText(value any) bool {
	_, ok := value.(string)
	return !ok && value != nil
}

// misread explains what YAML made of a text: y, no or 1 without quotation marks are none.
func misread(field string, value any) (message, remedy string) {
	what := describeValue(value)
	if what == "true or false" {
		what = "a boolean (YAML reads y, n, yes, no, on and off as one)"
	}
	return field + " is " + what + ", not a string", "put the value into quotation marks"
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
