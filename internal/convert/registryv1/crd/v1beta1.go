// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// upgrade rewrites a v1beta1 CRD as v1, in place and in full: what v1beta1 allowed implicitly is written out.
// What v1 cannot express is refused by its field.
func upgrade(m manifest.Manifest) []manifest.Problem {
	spec, ok := m.Object.Object["spec"].(map[string]any)
	if !ok {
		return []manifest.Problem{m.Problem("P10", "spec is not a mapping", "complete the CustomResourceDefinition")}
	}
	m.Object.SetAPIVersion(V1)
	approve(m, spec)
	if spec["scope"] == nil {
		spec["scope"] = string(apiextensionsv1.NamespaceScoped)
	}
	preserve := spec["preserveUnknownFields"] != false
	delete(spec, "preserveUnknownFields")
	versions := upgradeVersions(spec)
	upgradeConversion(spec)
	var problems []manifest.Problem
	for i, value := range versions {
		version, ok := value.(map[string]any)
		if !ok {
			return append(problems, m.Problem("P10", "an entry of spec.versions is not a mapping", "correct it"))
		}
		path := fieldpath.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		for _, cause := range upgradeSchema(version, preserve, path) {
			problems = append(problems, m.Problem("P10", cause, "write the CRD in "+V1))
		}
	}
	return problems
}

// approve gives a CRD in a group of Kubernetes' own domains the annotation that v1 demands there.
func approve(m manifest.Manifest, spec map[string]any) {
	const annotation = "api-approved.kubernetes.io"
	group, _ := spec["group"].(string)
	annotations := m.Object.GetAnnotations()
	if !protected(group) || annotations[annotation] != "" {
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotation] = "unapproved, written in v1beta1"
	m.Object.SetAnnotations(annotations)
}

func protected(group string) bool {
	for _, domain := range []string{"k8s.io", "kubernetes.io"} {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			return true
		}
	}
	return false
}

// upgradeVersions moves what v1beta1 says once for all versions into each of them.
func upgradeVersions(spec map[string]any) []any {
	versions, _ := spec["versions"].([]any)
	if name, ok := spec["version"].(string); ok && len(versions) == 0 {
		versions = []any{map[string]any{"name": name, "served": true, "storage": true}}
	}
	for _, value := range versions {
		version, ok := value.(map[string]any)
		if !ok {
			continue
		}
		for old, now := range map[string]string{"validation": "schema", "subresources": "subresources", "additionalPrinterColumns": "additionalPrinterColumns"} {
			if common := spec[old]; common != nil && version[now] == nil {
				version[now] = runtime.DeepCopyJSONValue(common)
			}
		}
		upgradeColumns(version)
	}
	for _, old := range []string{"version", "validation", "subresources", "additionalPrinterColumns"} {
		delete(spec, old)
	}
	spec["versions"] = versions
	return versions
}

func upgradeColumns(version map[string]any) {
	columns, _ := version["additionalPrinterColumns"].([]any)
	for _, value := range columns {
		if column, ok := value.(map[string]any); ok && column["JSONPath"] != nil {
			column["jsonPath"] = column["JSONPath"]
			delete(column, "JSONPath")
		}
	}
}

// upgradeConversion nests what concerns webhooks; v1beta1 is the review version where none is named.
func upgradeConversion(spec map[string]any) {
	conversion, ok := spec["conversion"].(map[string]any)
	if !ok || conversion["strategy"] != string(apiextensionsv1.WebhookConverter) {
		delete(spec, "conversion")
		return
	}
	versions := conversion["conversionReviewVersions"]
	if versions == nil {
		versions = []any{"v1beta1"}
	}
	spec["conversion"] = map[string]any{
		"strategy": conversion["strategy"],
		"webhook":  map[string]any{"clientConfig": conversion["webhookClientConfig"], "conversionReviewVersions": versions},
	}
}

// upgradeSchema makes a version's schema structural and returns why that is impossible, in words.
func upgradeSchema(version map[string]any, preserve bool, path *fieldpath.Path) []string {
	holder, ok := version["schema"].(map[string]any)
	if !ok {
		holder = map[string]any{}
		version["schema"] = holder
	}
	root, ok := holder["openAPIV3Schema"].(map[string]any)
	if !ok {
		root, preserve = map[string]any{}, true
		holder["openAPIV3Schema"] = root
	}
	root["type"] = "object"
	structure(root, preserve, true)
	var typed apiextensionsv1.JSONSchemaProps
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(root, &typed); err != nil {
		return []string{path.String() + " is not a valid schema"}
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&typed, &internal, nil); err != nil {
		return []string{path.String() + " is not a valid schema"}
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return []string{path.String() + " is not structural: " + err.Error()}
	}
	var causes []string
	for _, cause := range schema.ValidateStructural(path, structural) {
		causes = append(causes, cause.Field+" cannot be written in v1: "+cause.ErrorBody())
	}
	return causes
}

// structure gives a schema and those inside it the types that v1 demands, where they follow from what is there. preserve
// keeps unknown fields everywhere, as v1beta1 did without being asked.
func structure(s map[string]any, preserve, root bool) {
	intOrString(s)
	_, hasProperties := s["properties"].(map[string]any)
	_, hasAdditional := s["additionalProperties"].(map[string]any)
	if s["type"] == nil && s["x-kubernetes-int-or-string"] != true {
		switch {
		case hasProperties || hasAdditional:
			s["type"] = "object"
		case s["items"] != nil:
			s["type"] = "array"
		default:
			s["x-kubernetes-preserve-unknown-fields"] = true
		}
	}
	if preserve && (root || hasProperties) && s["type"] == "object" {
		s["x-kubernetes-preserve-unknown-fields"] = true
	}
	for _, inner := range innerSchemas(s) {
		structure(inner, preserve, false)
	}
}

func innerSchemas(s map[string]any) []map[string]any {
	var out []map[string]any
	add := func(value any) {
		if inner, ok := value.(map[string]any); ok {
			out = append(out, inner)
		}
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		for _, value := range properties {
			add(value)
		}
	}
	add(s["additionalProperties"])
	add(s["items"])
	return out
}

// intOrString recognises the old way to say that a value is a number or a text.
func intOrString(s map[string]any) {
	for _, word := range []string{"anyOf", "oneOf"} {
		options, _ := s[word].([]any)
		if len(options) != 2 || !onlyTypes(options) {
			continue
		}
		delete(s, word)
		delete(s, "type")
		delete(s, "format")
		s["x-kubernetes-int-or-string"] = true
	}
}

func onlyTypes(options []any) bool {
	seen := map[any]bool{}
	for _, option := range options {
		o, ok := option.(map[string]any)
		if !ok || len(o) != 1 {
			return false
		}
		seen[o["type"]] = true
	}
	return seen["integer"] && seen["string"]
}
