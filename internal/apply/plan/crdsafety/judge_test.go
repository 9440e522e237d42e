// SPDX-License-Identifier: Apache-2.0

package crdsafety_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
)

// live is served as v1alpha1 and v1 and has been stored as both.
const live = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  conversion: {strategy: None}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: &schema
      openAPIV3Schema:
        type: object
        description: A gadget.
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, format: int32, minimum: 1, maximum: 10}
              mode: {type: string, enum: [Fast, Slow], default: Slow}
              name: {type: string, pattern: "^[a-z]+$", maxLength: 63}
              port: {type: integer}
              note: {type: string, nullable: true}
              tags:
                type: object
                additionalProperties:
                  type: object
                  description: A tag.
                  properties:
                    text: {type: string}
              list:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [key]
                items:
                  type: object
                  required: [key]
                  properties:
                    key: {type: string}
                    deep: {type: object, properties: {er: {type: string}}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: string}}}
              either:
                type: object
                properties: {a: {type: string}, b: {type: string}}
                anyOf: [{required: [a]}, {required: [b]}]
                x-kubernetes-validations: [{rule: "has(self.a)", message: give a}]
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
    subresources: {status: {}}
  - name: v1
    served: true
    storage: true
    schema: *schema
    subresources: {status: {}}
status:
  storedVersions: [v1]
`

// edit is pairs of strings to replace.
type edit []string

func crd(t *testing.T, text string, edits edit) *unstructured.Unstructured {
	t.Helper()
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("the CRD has no %q", edits[i])
		}
		text = strings.ReplaceAll(text, edits[i], edits[i+1])
	}
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// both is a change in both versions, which share the schema.
func both(what string) []string { return []string{"v1 " + what, "v1alpha1 " + what} }

const (
	either   = "x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]"
	embedded = "type: object, x-kubernetes-embedded-resource: true, properties: {extra: {type: string}}"
)

// ownSchema makes v1 narrower than v1alpha1.
var ownSchema = edit{"storage: true\n    schema: *schema", "storage: true\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {size: {type: integer, maximum: 9}}}}}}"}

const servedAlpha = "name: v1alpha1\n    served: true"

var judgements = map[string]struct {
	reason   string
	live     edit // of the CRD on the cluster
	desired  edit // of the one to come, beside those
	breaking []string
	notable  []string // with those of the status
}{
	"nothing": {reason: "the same is safe"},
	// What is refused.
	"stored version dropped":  {"its resources could not be read", edit{"storedVersions: [v1]", "storedVersions: [v1, v1beta1]"}, nil, []string{"stored versions removed: [v1beta1]"}, nil},
	"served version dropped":  {"its clients get 404", nil, edit{"name: v1alpha1", "name: v1beta1"}, []string{"v1alpha1: served version removed"}, nil},
	"version not served":      {"its clients get 404", nil, edit{servedAlpha, strings.Replace(servedAlpha, "true", "false", 1)}, []string{"v1alpha1: version no longer served"}, nil},
	"field dropped":           {"its values are lost", nil, edit{"port: {type: integer}", ""}, both(".spec.port: field removed"), nil},
	"field below a list":      {"the path leads there, and only to the topmost", nil, edit{"deep: {type: object, properties: {er: {type: string}}}", ""}, both(".spec.list.items.deep: field removed"), nil},
	"field of a map":          {"as in a list", nil, edit{"text: {type: string}", "word: {type: string}"}, both(".spec.tags.additionalProperties.text: field removed"), nil},
	"map dropped":             {"whatever is in it is lost", nil, edit{"\n                additionalProperties:\n                  type: object\n                  description: A tag.\n                  properties:\n                    text: {type: string}", ""}, both(".spec.tags.additionalProperties: field removed"), nil},
	"type changed":            {"stored values become invalid", nil, edit{"port: {type: integer}", "port: {type: string}"}, both(`.spec.port: type changed: "integer" -> "string"`), nil},
	"enumeration shrinks":     {"stored values become invalid", nil, edit{"[Fast, Slow]", "[Slow]"}, both(`.spec.mode: allowed enum values removed: ["Fast"]`), nil},
	"enumeration is new":      {"stored values may become invalid", nil, edit{"port: {type: integer}", "port: {type: integer, enum: [80]}"}, both(".spec.port: enum constraint added when there was none previously: [80]"), nil},
	"maximum falls":           {"stored values may become invalid", nil, edit{"maximum: 10", "maximum: 9"}, both(".spec.size: maximum decreased: 10 -> 9"), nil},
	"minimum rises":           {"stored values may become invalid", nil, edit{"minimum: 1", "minimum: 2"}, both(".spec.size: minimum increased: 1 -> 2"), nil},
	"maximum excludes itself": {"ten was allowed", nil, edit{"maximum: 10", "maximum: 10, exclusiveMaximum: true"}, both(".spec.size: maximum decreased: 10 -> 9"), nil},
	"multiple of":             {"three was allowed", nil, edit{"maximum: 10", "maximum: 10, multipleOf: 2"}, both(".spec.size: multipleOf added or changed"), nil},
	"shorter":                 {"stored values may become invalid", nil, edit{"maxLength: 63", "maxLength: 15"}, both(".spec.name: maximum decreased: 63 -> 15"), nil},
	"pattern changed":         {"stored values may become invalid", nil, edit{"^[a-z]+$", "^[a-y]+$"}, both(`.spec.name: pattern changed: "^[a-z]+$" -> "^[a-y]+$"`), nil},
	"format is new":           {"stored values may become invalid", nil, edit{"port: {type: integer}", "port: {type: integer, format: int32}"}, both(`.spec.port: format changed: "" -> "int32"`), nil},
	"required field":          {"stored resources lack it", nil, edit{"required: [size]", "required: [size, port, name]"}, append(both(`.spec: new required field: "name"`), both(`.spec: new required field: "port"`)...), nil},
	"new and required":        {"stored resources lack it", nil, edit{"required: [size]", "required: [size, extra]", "port: {type: integer}", "port: {type: integer}\n              extra: {type: string}"}, both(`.spec: new required field: "extra"`), nil},
	"required lost its default": {"stored resources lack it", edit{"required: [size]", "required: [size, mode]"}, edit{", default: Slow", ""},
		both(`.spec: new required field: "mode"`), both(`.spec.mode: default value removed: "\"Slow\""`)},
	"not nullable":           {"stored values become invalid", nil, edit{"nullable: true", "nullable: false"}, both(".spec.note: nullable removed: true -> false"), nil},
	"scope changed":          {"resources are elsewhere", nil, edit{"scope: Namespaced", "scope: Cluster"}, []string{`scope changed: "Namespaced" -> "Cluster"`}, nil},
	"kind changed":           {"clients know the old one", nil, edit{"kind: Gadget,", "kind: Gizmo,"}, []string{`kind changed: "Gadget" -> "Gizmo"`}, nil},
	"status dropped":         {"clients write there", nil, edit{"    subresources: {status: {}}\n", ""}, both(".status: subresource status removed"), nil},
	"rule added":             {"stored values may become invalid", nil, edit{"rule: \"has(self.a)\"", "rule: \"has(self.b)\""}, both(`.spec.either: new validation rule: "has(self.b)"`), nil},
	"composition changed":    {"stored values may become invalid", nil, edit{"anyOf: [{required: [a]}, {required: [b]}]", "anyOf: [{required: [a]}]"}, both(".spec.either: anyOf changed"), nil},
	"list keys changed":      {"entries may collide", nil, edit{"map-keys: [key]", "map-keys: [key, deep]"}, both(".spec.list: keys of the list changed"), nil},
	"list of unique entries": {"entries may collide", edit{"x-kubernetes-list-type: map\n                x-kubernetes-list-map-keys: [key]", "x-kubernetes-list-type: atomic"}, edit{"x-kubernetes-list-type: atomic", "x-kubernetes-list-type: set"}, both(".spec.list: list type changed: atomic -> set"), nil},
	"unknown fields pruned": {"whatever is there is lost", nil, edit{"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}"},
		nil, both(".status: fields that the schema does not know are no longer kept")},
	"unknown fields of a status without subresource pruned": {"everybody writes there", edit{"    subresources: {status: {}}\n", ""}, edit{"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}"},
		both(".status: fields that the schema does not know are no longer kept"), nil},
	"status, and its subresource": {"it was not there", edit{"    subresources: {status: {}}\n", ""}, edit{"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}", "    served: true\n", "    served: true\n    subresources: {status: {}}\n"},
		both(".status: fields that the schema does not know are no longer kept"), nil},
	"required status":    {"no client can create a resource with it", nil, edit{"        properties:\n          spec:", "        required: [status]\n        properties:\n          spec:"}, both(`.: new required field: "status"`), nil},
	"status of the spec": {"it is another field", edit{"port: {type: integer}", "status: {type: integer}"}, edit{"status: {type: integer}", "status: {type: string}"}, both(`.spec.status: type changed: "integer" -> "string"`), nil},
	"version that was stored": {"resources may be stored in it", edit{servedAlpha, strings.Replace(servedAlpha, "true", "false", 1), "storedVersions: [v1]", "storedVersions: [v1alpha1, v1]", "{strategy: None}", "{strategy: Webhook}", "storage: true\n    schema: *schema", "storage: true\n    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}"},
		edit{"port: {type: integer}", ""}, []string{"v1alpha1 .spec.port: field removed"}, nil},
	"pruning begins": {"whatever is there is lost", edit{"scope: Namespaced", "scope: Namespaced\n  preserveUnknownFields: true"}, edit{"preserveUnknownFields: true", "preserveUnknownFields: false"},
		[]string{".spec.preserveUnknownFields: fields that the schema does not know are no longer kept"}, nil},
	"without a comparator": {"fail closed", nil, edit{"port: {type: integer}", "port: {type: integer, $ref: somewhere}"}, both(".spec.port: Ref changed"), nil},
	"new version loses a field": {"nothing converts: what is written as v2 loses it", nil, edit{"name: v1alpha1", "name: v1alpha1", "  - name: v1\n    served: true\n    storage: true\n    schema: *schema",
		"  - name: v1\n    served: true\n    storage: true\n    schema: *schema\n    subresources: {status: {}}\n  - name: v2\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}"},
		nil, []string{"v1 -> v2 .status: field removed"}},
	"conversion dropped": {"what is stored as v1alpha1 would be read as it is",
		edit{"{strategy: None}", "{strategy: Webhook}", "storedVersions: [v1]", "storedVersions: [v1alpha1, v1]"}, edit{"{strategy: Webhook}", "{strategy: None}"},
		[]string{".spec.conversion: conversion by webhook dropped while resources may be stored in v1alpha1"}, nil},
	"number narrowed":          {"1.5 was allowed", edit{"port: {type: integer}", "port: {type: number}"}, edit{"port: {type: number}", "port: {type: integer}"}, both(`.spec.port: type changed: "number" -> "integer"`), nil},
	"number to either":         {"1.5 was allowed", edit{"port: {type: integer}", "port: {type: number}"}, edit{"port: {type: number}", "port: {x-kubernetes-int-or-string: true}"}, both(`.spec.port: type changed: "number" -> ""`), nil},
	"either to integer":        {"words were allowed", edit{"port: {type: integer}", "port: {" + either + "}"}, edit{"port: {" + either + "}", "port: {type: integer}"}, both(`.spec.port: type changed: "" -> "integer"`), nil},
	"anything to either":       {"lists were allowed", edit{"port: {type: integer}", "port: {x-kubernetes-preserve-unknown-fields: true}"}, edit{"port: {x-kubernetes-preserve-unknown-fields: true}", "port: {x-kubernetes-preserve-unknown-fields: true, " + either + "}"}, append(both(".spec.port: anyOf changed"), both(".spec.port: x-kubernetes-int-or-string changed")...), nil},
	"either with a pattern":    {"it binds the words that were there", nil, edit{"note: {type: string, nullable: true}", "note: {" + either + ", nullable: true, pattern: a}"}, both(`.spec.note: pattern added: "" -> "a"`), nil},
	"either with a maximum":    {"it binds the numbers that were there", nil, edit{"port: {type: integer}", "port: {" + either + ", maximum: 3}"}, both(".spec.port: maximum constraint added when there was none previously: 3"), nil},
	"either, and an anyOf":     {"strings were allowed", edit{"port: {type: integer}", "port: {" + either + "}"}, edit{either, "x-kubernetes-int-or-string: true, anyOf: [{type: integer}]"}, both(".spec.port: anyOf changed"), nil},
	"number, but single":       {"large integers are no longer exact", nil, edit{"port: {type: integer}", "port: {type: number, format: float}"}, both(`.spec.port: format changed: "" -> "float"`), nil},
	"anything but null":        {"null was allowed", nil, edit{"note: {type: string, nullable: true}", "note: {x-kubernetes-preserve-unknown-fields: true}"}, both(".spec.note: nullable removed: true -> false"), nil},
	"anything but one field":   {"it is narrowed below", nil, edit{"deep: {type: object, properties: {er: {type: string}}}", "deep: {x-kubernetes-preserve-unknown-fields: true, properties: {er: {type: integer}}}"}, both(`.spec.list.items.deep.er: type changed: "string" -> "integer"`), nil},
	"resource pruned":          {"what every resource has is dropped", edit{"port: {type: integer}", "port: {" + embedded + "}"}, edit{"port: {" + embedded + "}", "port: {type: object, properties: {kind: {type: string}, metadata: {type: object}, extra: {type: string}}}"}, append(both(".spec.port.apiVersion: field removed"), both(".spec.port.metadata: fields that the schema does not know are no longer kept")...), nil},
	"metadata pruned":          {"all of it was kept, whatever was described", edit{"port: {type: integer}", "port: {type: object, x-kubernetes-embedded-resource: true, properties: {metadata: {type: object}}}"}, edit{"x-kubernetes-embedded-resource: true, properties: {metadata: {type: object}}", "properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}}"}, both(".spec.port.metadata: fields that the schema does not know are no longer kept"), nil},
	"has to be a resource":     {"stored values have no kind", edit{"port: {type: integer}", "port: {type: object}"}, edit{"port: {type: object}", "port: {" + embedded + "}"}, both(".spec.port: it has to be a resource of its own now"), nil},
	"one way less":             {"stored values may become invalid", edit{"anyOf: [{", "oneOf: [{"}, edit{"oneOf: [{required: [a]}, ", "oneOf: ["}, both(".spec.either: oneOf changed"), nil},
	"one condition more":       {"stored values may become invalid", nil, edit{"anyOf: [{required: [a]}, {required: [b]}]", "anyOf: [{required: [a]}, {required: [b]}]\n                allOf: [{required: [b]}]"}, both(".spec.either: allOf changed"), nil},
	"not this":                 {"stored values may become invalid", nil, edit{"port: {type: integer}", "port: {type: integer, not: {enum: [80]}}"}, both(".spec.port: not changed"), nil},
	"deep below not":           {"a schema in it changed", edit{"port: {type: integer}", "port: {type: integer, not: {allOf: [{properties: {a: {items: {enum: [1]}}}}]}}"}, edit{"enum: [1]", "enum: [1, 2]"}, both(".spec.port: not changed"), nil},
	"lost on the way":          {"what is lost over two steps is lost in one of them", nil, edit{"  - name: v1\n    served: true\n    storage: true\n    schema: *schema", "  - name: v1beta1\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}\n  - name: v1\n    served: true\n    storage: true\n    schema: *schema"}, []string{"v1alpha1 -> v1beta1 .status: field removed", "v1beta1 -> v1 .spec: fields that the schema does not know are no longer kept", `v1beta1 -> v1 .spec: new required field: "size"`}, nil},
	"lost in a new way":        {"another field than before", edit{ownSchema[0], ownSchema[1]}, edit{"schema: {openAPIV3Schema: {type: object, properties: {spec: {", "schema: {openAPIV3Schema: {type: object, properties: {spec: {required: [size], "}, []string{`v1 .spec: new required field: "size"`}, nil},
	"to be stored, not served": {"all is stored as v2", nil, edit{"served: true\n    storage: true", "served: true\n    storage: false", "status:\n  stored", "  - {name: v2, served: false, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {x-kubernetes-preserve-unknown-fields: true}}}}}\nstatus:\n  stored"}, []string{"v1 -> v2 .status: field removed"}, nil},
	"stored but not served":    {"it is read as v2 nevertheless", edit{"served: true\n    storage: true", "served: false\n    storage: true", servedAlpha, strings.Replace(servedAlpha, "true", "false", 1)}, edit{"status:\n  stored", "  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {x-kubernetes-preserve-unknown-fields: true}}}}}\nstatus:\n  stored"}, []string{"v1 -> v2 .status: field removed"}, nil},

	// What is accepted.
	"descriptions":              {"said to people only, at any depth", nil, edit{"A gadget.", "A better gadget.", "A tag.", "A label."}, nil, nil},
	"optional field":            {"nothing has it", nil, edit{"port: {type: integer}", "port: {type: integer}\n              extra: {type: string, enum: [a]}"}, nil, nil},
	"optional field in a map":   {"nothing has it", nil, edit{"text: {type: string}", "text: {type: string}\n                    more: {type: string}"}, nil, nil},
	"required with a default":   {"the API server supplies it", nil, edit{"required: [size]", "required: [size, mode]"}, nil, nil},
	"no longer required":        {"everything stays valid", nil, edit{"required: [size]", "required: []"}, nil, nil},
	"enumeration grows":         {"everything stays valid", nil, edit{"[Fast, Slow]", "[Fast, Slow, Idle]"}, nil, nil},
	"enumeration goes":          {"everything stays valid", nil, edit{", enum: [Fast, Slow]", ""}, nil, nil},
	"bounds widen":              {"everything stays valid", nil, edit{"minimum: 1, maximum: 10", "minimum: 0", "int32", "int64"}, nil, nil},
	"pattern goes":              {"everything stays valid", nil, edit{`pattern: "^[a-z]+$", maxLength: 63`, "maxLength: 253"}, nil, nil},
	"nullable":                  {"everything stays valid", nil, edit{"port: {type: integer}", "port: {type: integer, nullable: true}"}, nil, nil},
	"integer or string":         {"everything stays valid", nil, edit{"port: {type: integer}", "port: {x-kubernetes-int-or-string: true}"}, nil, nil},
	"rule goes":                 {"everything stays valid", nil, edit{"\n                x-kubernetes-validations: [{rule: \"has(self.a)\", message: give a}]", ""}, nil, nil},
	"rule worded differently":   {"the rule is the same", nil, edit{"message: give a", "message: a is missing"}, nil, nil},
	"one more way":              {"everything stays valid", nil, edit{"{required: [b]}]", "{required: [b]}, {required: [c]}]"}, nil, nil},
	"any way":                   {"everything stays valid", nil, edit{"\n                anyOf: [{required: [a]}, {required: [b]}]", ""}, nil, nil},
	"atomic list":               {"everything stays valid", nil, edit{"x-kubernetes-list-type: map\n                x-kubernetes-list-map-keys: [key]", "x-kubernetes-list-type: atomic"}, nil, nil},
	"undescribed and kept":      {"its values stay", nil, edit{"properties: {known: {type: string}}", "description: free"}, nil, nil},
	"version added":             {"nothing is lost through it", nil, edit{"storage: true\n    schema: *schema", "storage: true\n    schema: *schema\n    subresources: {status: {}}\n  - name: v2\n    served: true\n    storage: false\n    schema: *schema"}, nil, nil},
	"deprecated":                {"it is served still", nil, edit{servedAlpha, servedAlpha + "\n    deprecated: true"}, nil, nil},
	"conversion dropped early":  {"everything is stored in one version", edit{"{strategy: None}", "{strategy: Webhook}"}, edit{"{strategy: Webhook}", "{strategy: None}"}, nil, nil},
	"unserved version dropped":  {"it is not used and nothing is stored in it", edit{servedAlpha, strings.Replace(servedAlpha, "true", "false", 1)}, edit{"name: v1alpha1", "name: v0"}, nil, nil},
	"different with a webhook":  {"conversion keeps what v2 cannot hold", edit{"{strategy: None}", "{strategy: Webhook}"}, edit{"  - name: v1\n", "  - name: v2\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object}}\n  - name: v1\n"}, nil, nil},
	"any property":              {"what was allowed still is", edit{"tags:\n", "tags2:\n                type: object\n                additionalProperties: {type: integer}\n              tags:\n"}, edit{"additionalProperties: {type: integer}", "additionalProperties: true"}, nil, nil},
	"either, as it is written":  {"Kubernetes lets the same stand there twice", nil, edit{"port: {type: integer}", "port: {" + either + "}"}, nil, nil},
	"either, in an allOf":       {"the other way to write it", nil, edit{"port: {type: integer}", "port: {x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}]}"}, nil, nil},
	"words that are either":     {"everything stays valid", nil, edit{"text: {type: string}", "text: {" + either + ", maximum: 3, format: int64}"}, nil, nil},
	"number that is a quantity": {"the pattern binds words, and there were none", nil, edit{"port: {type: integer}", "port: {" + either + `, pattern: "^[0-9]+[kMG]?$", maxLength: 20}`}, nil, nil},
	"either, said twice":        {"it means the same", edit{"port: {type: integer}", "port: {x-kubernetes-int-or-string: true}"}, edit{"port: {x-kubernetes-int-or-string: true}", "port: {" + either + "}"}, nil, nil},
	"number":                    {"every integer is one", nil, edit{"port: {type: integer}", "port: {type: number}", "type: integer, format: int32, minimum: 1", "type: number, format: double, minimum: 1"}, nil, nil},
	"anything":                  {"every value is kept", nil, edit{"port: {type: integer}", "port: {x-kubernetes-preserve-unknown-fields: true}", "name: {type: string, pattern: \"^[a-z]+$\", maxLength: 63}", "name: {x-kubernetes-preserve-unknown-fields: true}"}, nil, nil},
	"any object":                {"every field is kept", nil, edit{"deep: {type: object, properties: {er: {type: string}}}", "deep: {type: object, x-kubernetes-preserve-unknown-fields: true}"}, nil, nil},
	"any list":                  {"every entry is kept", edit{"port: {type: integer}", "port: {type: array, items: {type: object, properties: {a: {type: string}}}}"}, edit{"{type: array, items: {type: object, properties: {a: {type: string}}}}", "{x-kubernetes-preserve-unknown-fields: true}"}, nil, nil},
	"either that is anything":   {"every value is kept", edit{"port: {type: integer}", "port: {" + either + "}"}, edit{"port: {" + either + "}", "port: {x-kubernetes-preserve-unknown-fields: true}"}, nil, nil},
	"map of anything":           {"every entry is kept", nil, edit{"additionalProperties:\n                  type: object\n                  description: A tag.\n                  properties:\n                    text: {type: string}", "x-kubernetes-preserve-unknown-fields: true"}, nil, nil},
	"fields that are a map":     {"every field is an entry", nil, edit{"properties: {er: {type: string}}", "additionalProperties: {type: string}"}, nil, nil},
	"not a resource":            {"its fields stay", edit{"port: {type: integer}", "port: {" + embedded + "}"}, edit{"port: {" + embedded + "}", "port: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {extra: {type: string}}}"}, nil, nil},
	"not a resource, described": {"its fields stay", edit{"port: {type: integer}", "port: {" + embedded + "}"}, edit{"port: {" + embedded + "}", "port: {type: object, properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object, x-kubernetes-preserve-unknown-fields: true}, extra: {type: string}}}"}, nil, nil},
	"metadata left out":         {"every resource has it", edit{"          spec:\n", "          metadata: {type: object}\n          kind: {type: string}\n          spec:\n"}, edit{"          metadata: {type: object}\n          kind: {type: string}\n", ""}, nil, nil},
	"zero said":                 {"the API server leaves it out", nil, edit{"{required: [a]}, {required: [b]}", "{required: [a], nullable: false}, {required: [b], properties: {}}", "port: {type: integer}", "port: {type: integer, nullable: false}"}, nil, nil},
	"keys in another order":     {"entries are as unique", edit{"map-keys: [key]", "map-keys: [key, deep]"}, edit{"map-keys: [key, deep]", "map-keys: [deep, key]"}, nil, nil},
	"no longer forbidden":       {"everything stays valid", edit{"port: {type: integer}", "port: {type: integer, not: {enum: [80]}}"}, edit{", not: {enum: [80]}", ""}, nil, nil},
	"one condition less":        {"everything stays valid", edit{"anyOf: [{", "allOf: [{"}, edit{"allOf: [{required: [a]}, ", "allOf: ["}, nil, nil},
	"differed before":           {"the numbers moved, and v1 is as narrow as it was", edit{ownSchema[0], ownSchema[1]}, edit{"minimum: 1, maximum: 10", "minimum: 1, maximum: 20"}, nil, nil},
	"lost before": {"v1 gets a part of what it did not keep at all", edit{ownSchema[0], ownSchema[1]}, edit{"schema: {openAPIV3Schema: {type: object, properties: {spec: {", "schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {a: {type: string}}}, spec: {"},
		nil, []string{"v1alpha1 -> v1 .status: fields that the schema does not know are no longer kept"}},
	// What causes a warning.
	"described again": {"other values were kept there until now", nil, edit{"properties: {known: {type: string}}", "properties: {known: {type: string}, size: {type: integer}}"}, nil, both(".spec.free.size: described now: other values than these are refused or dropped")},
	"default added":   {"it means something else when left out", nil, edit{"port: {type: integer}", "port: {type: integer, default: 80}"}, nil, both(`.spec.port: default added when there was none previously: "80"`)},
	"default":         {"it means something else when left out", nil, edit{"default: Slow", "default: Fast"}, nil, both(`.spec.mode: default value changed: "\"Slow\"" -> "\"Fast\""`)},
}

// Changes that may break users are found, with their path, and
// other changes pass.
func TestJudge(t *testing.T) {
	for name, tt := range judgements {
		t.Run(name, func(t *testing.T) {
			got, err := crdsafety.Judge(t.Context(), crd(t, live, tt.live), crd(t, live, append(append(edit{}, tt.live...), tt.desired...)))
			if err != nil {
				t.Fatal(err)
			}
			sorted := cmpopts.SortSlices(strings.Compare)
			if diff := cmp.Diff(tt.breaking, texts(got.Breaking), sorted, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: breaking (-want +got)\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(tt.notable, texts(append(got.Notable, got.Status...)), sorted, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: notable (-want +got)\n%s", tt.reason, diff)
			}
		})
	}
}

func texts(changes []crdsafety.Change) []string {
	var all []string
	for _, change := range changes {
		all = append(all, change.String())
	}
	return all
}

// The same two CRDs give the same words in the same order, so that a plan
// settles; and the inputs are not changed.
func TestJudgeIsPure(t *testing.T) {
	was := crd(t, live, nil)
	will := crd(t, live, edit{"required: [size]", "required: [size, port, name, note]", "[Fast, Slow]", "[x, y]", "maximum: 10", "maximum: 3", "text: {type: string}", ""})
	before := will.DeepCopy()
	first, err := crdsafety.Judge(t.Context(), was, will)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := crdsafety.Judge(t.Context(), was, will)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("judged differently (-first +again)\n%s", diff)
		}
	}
	if diff := cmp.Diff(before, will); diff != "" {
		t.Errorf("the desired CRD was changed\n%s", diff)
	}
}

// Odd CRDs are judged or not, without a panic: a CRD of a bundle has
// not been validated by an API server.
func TestJudgeOddities(t *testing.T) {
	tests := map[string]struct {
		reason        string
		live, desired edit
		unjudged      string
		breaking      []string
	}{
		"no schema":         {"everything is kept then", nil, edit{"schema: *schema", "additionalPrinterColumns: []"}, "", nil},
		"no versions":       {"both were served", nil, edit{"  versions:", "  other:"}, "", []string{"stored versions removed: [v1]", "v1alpha1: served version removed"}},
		"not a CRD":         {"the words say which", nil, edit{"scope: Namespaced", "scope: [Namespaced]"}, "the desired CRD does not read as a CustomResourceDefinition", nil},
		"not a live CRD":    {"the words say which", edit{"storedVersions: [v1]", "storedVersions: v1"}, nil, "the live CRD does not read as a CustomResourceDefinition", nil},
		"type of two":       {"it is not decided what that means", nil, edit{"port: {type: integer}", "port: {type: [integer, string]}"}, "the schema of v1alpha1 cannot be read: .spec.port", nil},
		"no field":          {"its values are unknown", nil, edit{"port: {type: integer}", "port: integer"}, "the schema of v1alpha1 cannot be read: .spec.port", nil},
		"fields in a list":  {"their values are unknown", nil, edit{"properties: {er: {type: string}}", "properties: [er]"}, "the schema of v1alpha1 cannot be read: .spec.list.items.deep", nil},
		"no schema at all":  {"its values are unknown", nil, edit{"openAPIV3Schema:", "openAPIV3Schema: [here]\n      other:"}, "the schema of v1alpha1 cannot be read: .", nil},
		"items in a list":   {"Kubernetes takes none", edit{"port: {type: integer}", "port: {type: array, items: {type: string}}"}, edit{"items: {type: string}", "items: [{type: string}]"}, "", append(both(".spec.port: items changed"), both(".spec.port.items: field removed")...)},
		"names of all sort": {"they stay one line", edit{"port: {type: integer}", `port: {type: object, properties: {"a.b/\n\e[31m": {type: string}}}`}, edit{`"a.b/\n\e[31m": {type: string}`, ""}, "", both(`.spec.port["a.b/\n\x1b[31m"]: field removed`)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := crdsafety.Judge(t.Context(), crd(t, live, tt.live), crd(t, live, append(append(edit{}, tt.live...), tt.desired...)))
			if err != nil {
				t.Fatal(err)
			}
			if (tt.unjudged == "") != (got.Unjudged == "") || !strings.Contains(got.Unjudged, tt.unjudged) {
				t.Errorf("%s: unjudged %q, want %q", tt.reason, got.Unjudged, tt.unjudged)
			}
			if diff := cmp.Diff(tt.breaking, texts(got.Breaking), cmpopts.SortSlices(strings.Compare), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: breaking (-want +got)\n%s", tt.reason, diff)
			}
		})
	}
}

// No bundle can make the judge panic, return different words the next time, or return
// without end.
func FuzzJudge(f *testing.F) {
	for _, add := range []string{
		"spec: {scope: Namespaced, names: {kind: A}, conversion: {strategy: Webhook}, versions: []}\nstatus: {storedVersions: [v1, v2]}",
		"spec: {versions: [{name: v1, served: true, subresources: {status: {}, scale: {}}}, {name: v2, storage: true}]}\nstatus: {storedVersions: [v1]}",
		"spec: {versions: [{name: v1, schema: {openAPIV3Schema: {properties: {a: {not: {items: {}}}}}}}]}",
	} {
		f.Add([]byte(add), []byte("spec: {versions: [{name: v1}]}"))
		f.Add([]byte("spec: {versions: [{name: v1}]}"), []byte(add))
	}
	f.Fuzz(func(t *testing.T, was, will []byte) {
		a, b := map[string]any{}, map[string]any{}
		if yaml.Unmarshal(was, &a) != nil || yaml.Unmarshal(will, &b) != nil {
			t.Skip("the input is not YAML")
		}
		judgedSoundly(t, &unstructured.Unstructured{Object: a}, &unstructured.Unstructured{Object: b})
	})
}

// The same for two schemas, each in two versions; and one that does not change
// breaks nothing.
func FuzzJudgeSchemas(f *testing.F) {
	for _, add := range []string{
		"type: object", "x-kubernetes-preserve-unknown-fields: true", "{" + either + "}", "{" + embedded + "}",
		"properties: {a: {type: array, items: {type: string, enum: [a]}}, b: {additionalProperties: {type: integer}}}\nrequired: [a]",
		"anyOf: [{required: [a]}, {not: {allOf: [{oneOf: []}]}}]\nx-kubernetes-validations: [{rule: a}]",
		"items: [{}]\nadditionalProperties: true\ndefinitions: {a: {}}\ndependencies: {a: [b]}",
	} {
		f.Add([]byte(add), []byte("type: object"))
		f.Add([]byte("type: object"), []byte(add))
	}
	f.Fuzz(func(t *testing.T, was, will []byte) {
		a, b := map[string]any{}, map[string]any{}
		if yaml.Unmarshal(was, &a) != nil || yaml.Unmarshal(will, &b) != nil {
			t.Skip("the input is not YAML")
		}
		live, desired := versioned(a, b), versioned(b, a)
		judgedSoundly(t, live, desired)
		if got := judgedSoundly(t, live, live.DeepCopy()); len(got.Breaking)+len(got.Notable) > 0 {
			t.Errorf("nothing changed: %v", got)
		}
	})
}

func judgedSoundly(t *testing.T, live, desired *unstructured.Unstructured) crdsafety.Judgement {
	t.Helper()
	got := judged(t, live, desired)
	if diff := cmp.Diff(got, judged(t, live.DeepCopy(), desired.DeepCopy())); diff != "" {
		t.Errorf("judged differently (-first +again)\n%s", diff)
	}
	bounded(t, crdsafety.Change{What: got.Unjudged})
	for _, change := range append(got.Breaking, got.Notable...) {
		bounded(t, change)
	}
	return got
}
