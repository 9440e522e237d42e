// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

func oldCRD(t *testing.T, spec string) manifest.Manifest {
	t.Helper()
	object := map[string]any{"apiVersion": V1beta1, "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "relics.example.org"}}
	var content map[string]any
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	object["spec"] = content
	return manifest.Manifest{File: "crd.yaml", Object: &unstructured.Unstructured{Object: object}}
}

// TestP10Upgrade: what v1beta1 says in its own ways is said in those of v1.
func TestP10Upgrade(t *testing.T) {
	const head = "group: example.org\nnames: {kind: Relic, plural: relics}\nscope: Namespaced\n"
	const v1Head = head + "versions:\n"
	for name, c := range map[string]struct{ reason, old, want string }{
		"one version": {"version, and nothing known about the fields", head + "version: v1",
			v1Head + "- {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}"},
		"common parts": {"schema, columns and subresources go into each version", head + "preserveUnknownFields: false\nvalidation: {openAPIV3Schema: {type: object}}\nsubresources: {status: {}}\n" +
			"additionalPrinterColumns: [{name: A, type: string, JSONPath: .a}]\nversions: [{name: v1, served: true, storage: true}, {name: v0, served: true, storage: false}]",
			v1Head + "- &v {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}, subresources: {status: {}}, additionalPrinterColumns: [{name: A, type: string, jsonPath: .a}]}\n" +
				"- {name: v0, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}, subresources: {status: {}}, additionalPrinterColumns: [{name: A, type: string, jsonPath: .a}]}"},
		"own parts": {"what a version has itself stays", head + "preserveUnknownFields: false\nversions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: own}}}]",
			v1Head + "- {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: own}}}"},
		"conversion": {"the webhook moves", head + "preserveUnknownFields: false\nversion: v1\nvalidation: {openAPIV3Schema: {}}\nconversion: {strategy: Webhook, webhookClientConfig: {service: {name: s, namespace: ns}}}",
			v1Head + "- {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\nconversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: s, namespace: ns}}, conversionReviewVersions: [v1beta1]}}"},
		"no conversion": {"None says nothing", head + "preserveUnknownFields: false\nversion: v1\nvalidation: {openAPIV3Schema: {type: object}}\nconversion: {strategy: None}",
			v1Head + "- {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}"},
		"types": {"types that follow are written out", head + "preserveUnknownFields: false\nversion: v1\nvalidation: {openAPIV3Schema: {properties: {a: {properties: {b: {type: string}}}, c: {items: {type: integer}}, d: {anyOf: [{type: string}, {type: integer}]}, e: {additionalProperties: {type: string}}, f: {}}}}",
			v1Head + "- {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: object, properties: {b: {type: string}}}, c: {type: array, items: {type: integer}}, d: {x-kubernetes-int-or-string: true}, e: {type: object, additionalProperties: {type: string}}, f: {x-kubernetes-preserve-unknown-fields: true}}}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			m, problems := Read(oldCRD(t, c.old))
			if len(problems) > 0 {
				t.Fatalf("%s: %v", c.reason, problems)
			}
			want := oldCRD(t, c.want)
			want.Object.SetAPIVersion(V1)
			if diff := cmp.Diff(want.Object.Object, m.Object.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestP10Protected: v1 demands an annotation in Kubernetes' own groups.
func TestP10Protected(t *testing.T) {
	for group, want := range map[string]bool{"k8s.io": true, "a.k8s.io": true, "b.kubernetes.io": true, "example.org": false, "notk8s.io": false} {
		m, problems := Read(oldCRD(t, "group: "+group+"\nnames: {kind: Relic, plural: relics}\nversion: v1"))
		if _, got := m.Object.GetAnnotations()["api-approved.kubernetes.io"]; got != want || len(problems) > 0 {
			t.Errorf("group %s: annotated %v, problems %v", group, got, problems)
		}
	}
}

// TestP10Impossible: what v1 cannot express is refused by its field.
func TestP10Impossible(t *testing.T) {
	for name, c := range map[string]struct{ reason, spec, message string }{
		"not structural": {"a type inside of anyOf", "version: v1\nvalidation: {openAPIV3Schema: {properties: {a: {type: object, anyOf: [{type: object, properties: {b: {type: string}}}]}}}}", "cannot be written in v1"},
		"reference":      {"schemas that refer", "version: v1\nvalidation: {openAPIV3Schema: {$ref: 'http://example.org'}}", "spec.versions[0].schema.openAPIV3Schema"},
		"no schema":      {"a schema of the wrong type", "version: v1\nvalidation: {openAPIV3Schema: {properties: [a]}}", "not a valid schema"},
		"no version":     {"an entry that is none", "versions: [v1]", "not a mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Read(oldCRD(t, "group: example.org\nnames: {kind: Relic, plural: relics}\n"+c.spec))
			if len(problems) == 0 || problems[0].Rule != "P10" || !strings.Contains(problems[0].Message, c.message) {
				t.Errorf("%s: %v", c.reason, problems)
			}
		})
	}
}
