// SPDX-License-Identifier: Apache-2.0

package crdsafety_test

import (
	"fmt"
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

// edit is pairs of texts that are replaced.
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

// both says a change of the schema that the two versions share.
func both(what string) []string { return []string{"v1 " + what, "v1alpha1 " + what} }

const servedAlpha = "name: v1alpha1\n    served: true"

var judgements = map[string]struct {
	reason   string
	live     edit // of the CRD on the cluster
	desired  edit // of the one to come, beside those
	breaking []string
	notable  []string
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
	"maximum excludes itself": {"ten was allowed", nil, edit{"maximum: 10", "maximum: 10, exclusiveMaximum: true"}, both(".spec.size: maximum became exclusive"), nil},
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
		both(".status: fields that the schema does not know are no longer kept"), nil},
	"pruning begins": {"whatever is there is lost", edit{"scope: Namespaced", "scope: Namespaced\n  preserveUnknownFields: true"}, edit{"preserveUnknownFields: true", "preserveUnknownFields: false"},
		[]string{".spec.preserveUnknownFields: fields that the schema does not know are no longer kept"}, nil},
	"what nobody judges": {"fail closed", nil, edit{"port: {type: integer}", "port: {type: integer, $ref: somewhere}"}, both(".spec.port: Ref changed"), nil},
	"new version loses a field": {"nothing converts: what is written as v2 loses it", nil, edit{"name: v1alpha1", "name: v1alpha1", "  - name: v1\n    served: true\n    storage: true\n    schema: *schema",
		"  - name: v1\n    served: true\n    storage: true\n    schema: *schema\n    subresources: {status: {}}\n  - name: v2\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}"},
		[]string{"v1 -> v2 .status: field removed", "v1alpha1 -> v2 .status: field removed"}, nil},
	"conversion dropped": {"what is stored as v1alpha1 would be read as it is",
		edit{"{strategy: None}", "{strategy: Webhook}", "storedVersions: [v1]", "storedVersions: [v1alpha1, v1]"}, edit{"{strategy: Webhook}", "{strategy: None}"},
		[]string{".spec.conversion: conversion by webhook dropped while resources may be stored in v1alpha1"}, nil},

	// What is accepted.
	"descriptions":             {"said to people only, at any depth", nil, edit{"A gadget.", "A better gadget.", "A tag.", "A label."}, nil, nil},
	"optional field":           {"nothing has it", nil, edit{"port: {type: integer}", "port: {type: integer}\n              extra: {type: string, enum: [a]}"}, nil, nil},
	"optional field in a map":  {"nothing has it", nil, edit{"text: {type: string}", "text: {type: string}\n                    more: {type: string}"}, nil, nil},
	"required with a default":  {"the API server supplies it", nil, edit{"required: [size]", "required: [size, mode]"}, nil, nil},
	"no longer required":       {"everything stays valid", nil, edit{"required: [size]", "required: []"}, nil, nil},
	"enumeration grows":        {"everything stays valid", nil, edit{"[Fast, Slow]", "[Fast, Slow, Idle]"}, nil, nil},
	"enumeration goes":         {"everything stays valid", nil, edit{", enum: [Fast, Slow]", ""}, nil, nil},
	"bounds widen":             {"everything stays valid", nil, edit{"minimum: 1, maximum: 10", "minimum: 0", "int32", "int64"}, nil, nil},
	"pattern goes":             {"everything stays valid", nil, edit{`pattern: "^[a-z]+$", maxLength: 63`, "maxLength: 253"}, nil, nil},
	"nullable":                 {"everything stays valid", nil, edit{"port: {type: integer}", "port: {type: integer, nullable: true}"}, nil, nil},
	"integer or string":        {"everything stays valid", nil, edit{"port: {type: integer}", "port: {x-kubernetes-int-or-string: true}"}, nil, nil},
	"rule goes":                {"everything stays valid", nil, edit{"\n                x-kubernetes-validations: [{rule: \"has(self.a)\", message: give a}]", ""}, nil, nil},
	"rule worded differently":  {"the rule is the same", nil, edit{"message: give a", "message: a is missing"}, nil, nil},
	"one more way":             {"everything stays valid", nil, edit{"{required: [b]}]", "{required: [b]}, {required: [c]}]"}, nil, nil},
	"any way":                  {"everything stays valid", nil, edit{"\n                anyOf: [{required: [a]}, {required: [b]}]", ""}, nil, nil},
	"atomic list":              {"everything stays valid", nil, edit{"x-kubernetes-list-type: map\n                x-kubernetes-list-map-keys: [key]", "x-kubernetes-list-type: atomic"}, nil, nil},
	"undescribed and kept":     {"its values stay", nil, edit{"properties: {known: {type: string}}", "description: free"}, nil, nil},
	"version added":            {"nothing is lost through it", nil, edit{"storage: true\n    schema: *schema", "storage: true\n    schema: *schema\n    subresources: {status: {}}\n  - name: v2\n    served: true\n    storage: false\n    schema: *schema"}, nil, nil},
	"deprecated":               {"it is served still", nil, edit{servedAlpha, servedAlpha + "\n    deprecated: true"}, nil, nil},
	"conversion dropped early": {"everything is stored in one version", edit{"{strategy: None}", "{strategy: Webhook}"}, edit{"{strategy: Webhook}", "{strategy: None}"}, nil, nil},
	"unserved version dropped": {"nobody uses it and nothing is stored in it", edit{servedAlpha, strings.Replace(servedAlpha, "true", "false", 1)}, edit{"name: v1alpha1", "name: v0"}, nil, nil},
	"different with a webhook": {"conversion keeps what v2 cannot hold", edit{"{strategy: None}", "{strategy: Webhook}"}, edit{"  - name: v1\n", "  - name: v2\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object}}\n  - name: v1\n"}, nil, nil},
	"any property":             {"what was allowed still is", edit{"tags:\n", "tags2:\n                type: object\n                additionalProperties: {type: integer}\n              tags:\n"}, edit{"additionalProperties: {type: integer}", "additionalProperties: true"}, nil, nil},
	// What is told.
	"default": {"it means something else when left out", nil, edit{"default: Slow", "default: Fast"}, nil, both(`.spec.mode: default value changed: "\"Slow\"" -> "\"Fast\""`)},
}

// What may break users is found, with its path, and
// what cannot is let pass.
func TestJudge(t *testing.T) {
	for name, tt := range judgements {
		t.Run(name, func(t *testing.T) {
			got, err := crdsafety.Judge(crd(t, live, tt.live), crd(t, live, append(append(edit{}, tt.live...), tt.desired...)))
			if err != nil {
				t.Fatal(err)
			}
			sorted := cmpopts.SortSlices(strings.Compare)
			if diff := cmp.Diff(tt.breaking, texts(got.Breaking), sorted, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: breaking (-want +got)\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(tt.notable, texts(got.Notable), sorted, cmpopts.EquateEmpty()); diff != "" {
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

// The same two CRDs get the same words in the same order, or a plan would never
// settle; and the inputs are not changed.
func TestJudgeIsPure(t *testing.T) {
	was := crd(t, live, nil)
	will := crd(t, live, edit{"required: [size]", "required: [size, port, name, note]", "[Fast, Slow]", "[x, y]", "maximum: 10", "maximum: 3", "text: {type: string}", ""})
	before := will.DeepCopy()
	first, err := crdsafety.Judge(was, will)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := crdsafety.Judge(was, will)
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

// Odd CRDs are judged or refused, and nothing falls over: what comes from a bundle
// has passed no API server.
func TestJudgeOddities(t *testing.T) {
	many := live
	for i := range 60 {
		many = strings.Replace(many, "status:\n  storedVersions", fmt.Sprintf("  - {name: v1beta%d, served: true, storage: false}\nstatus:\n  storedVersions", i+1), 1)
	}
	tests := map[string]struct {
		reason  string
		desired *unstructured.Unstructured
		want    string // of the error, or of the first change
	}{
		"no schema":     {"everything is kept then", crd(t, live, edit{"schema: *schema", "additionalPrinterColumns: []"}), ""},
		"no versions":   {"both were served", crd(t, live, edit{"  versions:", "  other:"}), "stored versions removed: [v1]"},
		"not a CRD":     {"the words say which", crd(t, live, edit{"scope: Namespaced", "scope: [Namespaced]"}), "desired CustomResourceDefinition"},
		"many versions": {"comparing all pairs would take too long", crd(t, many, nil), "62 versions"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := crdsafety.Judge(crd(t, live, nil), tt.desired)
			text := strings.Join(texts(got.Breaking), "; ")
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, tt.want) || tt.want == "" && text != "" {
				t.Errorf("%s: got %q, want %q", tt.reason, text, tt.want)
			}
		})
	}
}

// A bundle cannot make judging fall over.
func FuzzJudge(f *testing.F) {
	f.Add([]byte(live), []byte(live))
	f.Add([]byte(live), []byte("spec: {versions: [{name: v1, schema: {openAPIV3Schema: {properties: {a: {not: {items: {}}}}}}}]}"))
	f.Fuzz(func(t *testing.T, was, will []byte) {
		a, b := map[string]any{}, map[string]any{}
		if yaml.Unmarshal(was, &a) != nil || yaml.Unmarshal(will, &b) != nil {
			t.Skip("no YAML")
		}
		got, _ := crdsafety.Judge(&unstructured.Unstructured{Object: a}, &unstructured.Unstructured{Object: b})
		for _, change := range got.Breaking {
			if strings.Contains(change.What, "\n") || len(change.What) > 300 {
				t.Errorf("unbounded words %q", change.What)
			}
		}
	})
}
