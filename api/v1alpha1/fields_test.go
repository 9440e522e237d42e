// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// fieldsOf returns the schemas of the fields below spec and status by their path without list indexes, by kind.
func fieldsOf(t *testing.T) map[string]map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	files = append(files, rolloutCRD)
	if err != nil || len(files) != 6 {
		t.Fatalf("there are %d CRDs, want 6: %v", len(files), err)
	}
	kinds := map[string]map[string]apiextensionsv1.JSONSchemaProps{}
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict([]byte(read(t, file)), &crd); err != nil {
			t.Fatal(err)
		}
		fields := map[string]apiextensionsv1.JSONSchemaProps{}
		for _, half := range []string{"spec", "status"} {
			addFields(fields, half, crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[half])
		}
		kinds[crd.Spec.Names.Kind] = fields
	}
	return kinds
}

func addFields(fields map[string]apiextensionsv1.JSONSchemaProps, at string, schema apiextensionsv1.JSONSchemaProps) {
	if schema.Items != nil {
		schema.Properties = schema.Items.Schema.Properties
	}
	for name, property := range schema.Properties {
		fields[at+"."+name] = property
		addFields(fields, at+"."+name, property)
	}
}

// foreignFields are fields of other kinds that pages name, with the kind.
var foreignFields = map[string]string{
	"spec.namespace":                   "ClusterExtension of OLM",
	"status.bundleLookups":             "InstallPlan of OLM",
	"status.installedCSV":              "Subscription of OLM",
	"spec.targetNamespace":             "Kustomization and HelmRelease of Flux",
	"spec.values":                      "HelmRelease of Flux",
	"spec.valuesFrom":                  "HelmRelease of Flux",
	"spec.wait":                        "Kustomization of Flux",
	"spec.force":                       "Kustomization of Flux",
	"status.lastAppliedOriginRevision": "Kustomization of Flux",
	"spec.healthChecks":                "Kustomization of Flux",
	"spec.healthCheckExprs":            "Kustomization of Flux",
	"spec.decryption":                  "Kustomization of Flux",
	"status.storedVersions":            "CustomResourceDefinition of Kubernetes",
}

// generatedList is a list in a page of fields of kinds of Kubernetes, which a test compares with the code.
var generatedList = regexp.MustCompile(`(?s)<!-- begin of the list: .*?<!-- end of the list -->`)

// TestPagesNameFieldsThatExist wants every field of a spec or status that a page names to be one of Satchel's kinds.
func TestPagesNameFieldsThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, fields := range fieldsOf(t) {
		for name := range fields {
			known[name] = true
		}
	}
	pages := []string{"../../README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/guides/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	named, foreign := 0, map[string]bool{}
	for _, page := range pages {
		for _, match := range regexp.MustCompile("`((spec|status)\\.[A-Za-z0-9.]+)").FindAllStringSubmatch(generatedList.ReplaceAllString(read(t, page), ""), -1) {
			name := strings.TrimSuffix(match[1], ".")
			switch {
			case known[name]:
				named++
			case foreignFields[name] != "":
				foreign[name] = true
			default:
				t.Errorf("%s names %s, which no kind of Satchel has", page, name)
			}
		}
	}
	if named < 200 {
		t.Errorf("only %d fields were found on %d pages", named, len(pages))
	}
	for _, name := range slices.Sorted(maps.Keys(foreignFields)) {
		if !foreign[name] {
			t.Errorf("no page names %s: remove it from the list", name)
		}
	}
}
