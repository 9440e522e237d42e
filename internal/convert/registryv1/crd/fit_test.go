// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/shape"
)

// checkFit compares fitting with the round trip through the typed definition that it stands for.
func checkFit(t *testing.T, spec map[string]any) {
	t.Helper()
	var typed apiextensions.CustomResourceDefinitionSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &typed); err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"spec": spec}
	if misfits := shape.Fit(crdShape, object); len(misfits) > 0 {
		t.Fatal(misfits)
	}
	got, err := json.Marshal(object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plainJSON(t, want), plainJSON(t, got)); diff != "" {
		t.Errorf("(-typed +fitted):\n%s", diff)
	}
}

// plainJSON drops nulls, which the typed form writes for missing lists.
func plainJSON(t *testing.T, data []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return dropNull(value)
}

func dropNull(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if inner == nil {
				delete(v, key)
				continue
			}
			v[key] = dropNull(inner)
		}
	case []any:
		for i := range v {
			v[i] = dropNull(v[i])
		}
	}
	return value
}

// TestFitIsTypedRoundTrip tries the corners of the type.
func TestFitIsTypedRoundTrip(t *testing.T) {
	for name, c := range map[string]struct{ reason, spec string }{
		"nothing":       {"fields that are always written appear", "{}"},
		"unknown":       {"unknown fields vanish at every depth", "{a: 1, names: {kind: A, b: 2}, versions: [{name: v1, c: 3}]}"},
		"zeros":         {"omitted zeros vanish, others stay", `{group: "", names: {kind: "", singular: "", shortNames: []}, versions: [{name: v1, served: false, deprecated: false, storage: false}]}`},
		"nulls":         {"null is nothing", "{group: ~, conversion: ~, versions: ~}"},
		"null items":    {"but an item of a list stays", "{versions: [~]}"},
		"bool or props": {"additionalProperties is either", `{versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {properties: {a: {additionalProperties: true}, b: {additionalProperties: false}, c: {additionalProperties: {type: string, x: y}}}}}}]}`},
		"items":         {"items is one schema or many", `{versions: [{name: v1, schema: {openAPIV3Schema: {items: {type: string, nullable: false}}}}, {name: v2, schema: {openAPIV3Schema: {items: [{type: string}, {x: y}]}}}]}`},
		"dependencies":  {"dependencies too", `{versions: [{name: v1, schema: {openAPIV3Schema: {dependencies: {a: [b, c], d: {type: object, e: f}}}}}]}`},
		"free values":   {"default, example and enum hold anything", `{versions: [{name: v1, schema: {openAPIV3Schema: {default: {a: ~, b: [0, ""]}, example: 0, enum: [1, "", {x: y}]}}}]}`},
		"pointers":      {"a zero behind a pointer says something", `{versions: [{name: v1, schema: {openAPIV3Schema: {minimum: 0, maxLength: 0, x-kubernetes-preserve-unknown-fields: false, description: ""}}}]}`},
		"numbers":       {"limits are floats", `{versions: [{name: v1, schema: {openAPIV3Schema: {minimum: 1, maximum: 1.5, multipleOf: 2}}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			var spec map[string]any
			if err := yaml.Unmarshal([]byte(c.spec), &spec); err != nil {
				t.Fatal(err)
			}
			checkFit(t, (&unstructured.Unstructured{Object: spec}).DeepCopy().Object)
		})
	}
}

// TestFitOnCorpus does the same with all published definitions.
func TestFitOnCorpus(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "..", "shared", "corpus", "registryv1", "bundles")
	if _, err := os.Stat(root); err != nil {
		t.Skip("the corpus of published bundles is not beside the repository (../shared/corpus), so its definitions are not tried")
	}
	files := os.DirFS(root)
	reader := manifest.NewReader(files, manifest.Limits{TotalBytes: 1 << 30})
	tried := 0
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Base(filepath.Dir(name)) != "manifests" {
			return err
		}
		for _, m := range reader.Read(name) {
			if m.Object.GetAPIVersion() == V1 {
				checkFit(t, m.Object.Object["spec"].(map[string]any))
				tried++
			}
		}
		return nil
	})
	t.Logf("%d definitions", tried)
	if err != nil || tried == 0 || len(reader.Problems()) > 0 {
		t.Errorf("%d definitions, %v, problems %v", tried, err, reader.Problems())
	}
}
