// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// TestP12Properties pins the annotation of the Pods byte for byte: it is what OLM v1's operator-controller writes, since any
// other spelling would restart the Pods of an operator that is adopted from there.
func TestP12Properties(t *testing.T) {
	const written = `'[{"type": "gadget.flavour", "value": {"sweet": true}}]'`
	annotated := func(now string) change { return change{csvFile, "olm.properties: " + written, now} }
	for name, c := range map[string]struct {
		reason     string
		annotation string  // in the CSV
		file       *string // metadata/properties.yaml
		want       any     // nil: no annotation
	}{
		"none":              {"nothing is said", "unused: x", nil, nil},
		"spaces":            {"copied as it is, though JSON has a shorter spelling", "olm.properties: " + written, nil, `[{"type": "gadget.flavour", "value": {"sweet": true}}]`},
		"indented":          {"line breaks stay", "olm.properties: \"[\\n  {\\\"type\\\": \\\"a\\\", \\\"value\\\": 1}\\n]\\n\"", nil, "[\n  {\"type\": \"a\", \"value\": 1}\n]\n"},
		"unknown fields":    {"they stay", `olm.properties: '[{"type":"a","value":1,"more":2}]'`, nil, `[{"type":"a","value":1,"more":2}]`},
		"ampersands":        {"they are not escaped", `olm.properties: '[{"type":"a","value":"<&>"}]'`, nil, `[{"type":"a","value":"<&>"}]`},
		"empty list":        {"it stays", "olm.properties: '[]'", nil, "[]"},
		"null":              {"it stays", "olm.properties: 'null'", nil, "null"},
		"empty file":        {"it counts as none", "olm.properties: " + written, new(""), `[{"type": "gadget.flavour", "value": {"sweet": true}}]`},
		"file without any":  {"the union is written again", "olm.properties: " + written, new("properties: []\n"), `[{"type":"gadget.flavour","value":{"sweet":true}}]`},
		"file of a comment": {"as OLM v1 writes nothing", "unused: x", new("# none yet\n"), "null"},
		"file alone":        {"compact JSON", "unused: x", new("properties:\n- type: a\n  value: '<1>'\n"), `[{"type":"a","value":"\u003c1\u003e"}]`},
		"union":             {"the annotation's come first, without what is unknown", `olm.properties: '[{"type": "a", "value": {"c": 1, "b": "x & y"}, "more": 2}]'`, new("properties: [{type: d, value: {z: 1, x: 2}}]\n"), `[{"type":"a","value":{"c":1,"b":"x \u0026 y"}},{"type":"d","value":{"x":2,"z":1}}]`},
		"file has no value": {"as OLM v1 writes it", "unused: x", new("properties: [{type: d}]\n"), `[{"type":"d","value":null}]`},
	} {
		t.Run(name, func(t *testing.T) {
			files := bundleWith(t, "gadget", annotated(c.annotation))
			delete(files, "metadata/properties.yaml")
			if c.file != nil {
				files["metadata/properties.yaml"] = &fstest.MapFile{Data: []byte(*c.file), Mode: 0o644}
			}
			rendered, err := Convert(files, testOptions(), manifest.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, m := range rendered.Manifests {
				if m.Object.GetKind() != "Deployment" {
					continue
				}
				found++
				annotations, _, _ := unstructured.NestedMap(m.Object.Object, "spec", "template", "metadata", "annotations")
				if got := annotations["olm.properties"]; got != c.want {
					t.Errorf("%s: %s has\n%v, want\n%v", c.reason, m.Object.GetName(), got, c.want)
				}
			}
			if found == 0 {
				t.Error("there is no Deployment")
			}
		})
	}
}
