// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/overlay"
)

// merges are strategic merge patches of the Deployment web, or of the custom resource widget.
var merges = map[string]string{
	"a field":                   "spec: {replicas: 2}",
	"a new mapping":             "spec: {strategy: {type: Recreate, rollingUpdate: null}}",
	"a field taken away":        "spec: {replicas: null}",
	"a field that is not there": "spec: {paused: null, nothing: {a: null}}",
	"an annotation":             "metadata: {annotations: {tier: b, note: x}}",
	"an item by its name":       "spec: {template: {spec: {containers: [{name: web, image: other}]}}}",
	"a new item":                "spec: {template: {spec: {containers: [{name: new, image: other}]}}}",
	"an item deleted":           "spec: {template: {spec: {containers: [{name: log, $patch: delete}]}}}",
	"a list replaced":           "spec: {template: {spec: {containers: [{name: new}, {$patch: replace}]}}}",
	"a mapping replaced":        "spec: {template: {spec: {$patch: replace, hostname: a}}}",
	"a mapping deleted":         "spec: {template: {spec: {$patch: delete}}}",
	"a mapping merged":          "spec: {template: {spec: {$patch: merge, hostname: a}}}",
	"environment":               "spec: {template: {spec: {containers: [{name: web, env: [{name: A, value: z}, {name: B, value: w}]}]}}}",
	"ports":                     "spec: {template: {spec: {containers: [{name: web, ports: [{containerPort: 80, name: http}, {containerPort: 81}]}]}}}",
	"a list of texts":           "spec: {template: {spec: {containers: [{name: web, args: [a, b]}]}}}",
	"volumes":                   "spec: {template: {spec: {volumes: [{name: c, configMap: null, emptyDir: {}}, {name: d, emptyDir: {}}]}}}",
	"numbers and booleans":      "spec: {paused: true, progressDeadlineSeconds: 5, x: 1.5, y: \"1\", z: \"true\"}",
	"empty":                     "spec: {template: {spec: {nodeSelector: {}, tolerations: []}}}",
	"a custom list":             "spec: {items: [{name: a, size: 2}]}",
	"a null list":               "spec: {items: null, containers: null}",
}

// TestMergesAsInKustomize compares with the library itself, which gets the whole object.
func TestMergesAsInKustomize(t *testing.T) {
	const widget = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: widget, labels: {app: w}}\nspec: {items: [{name: a, size: 1, x: text}, {name: b}], containers: [{name: web}], replicas: 1, template: {spec: {hostname: b, volumes: []}}}\n"
	for name, patch := range merges {
		for kind, object := range map[string]string{"Deployment": web, "Widget": widget} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				patch := named(t, patch)
				memory := filesys.MakeFsInMemory()
				kustomization, err := yaml.Marshal(map[string]any{"resources": []string{"all.yaml"}, "patches": []any{map[string]any{"patch": patch, "target": map[string]any{"kind": kind}}}})
				if err != nil {
					t.Fatal(err)
				}
				for file, content := range map[string]string{"/kustomization.yaml": string(kustomization), "/all.yaml": object} {
					if err := memory.WriteFile(file, []byte(content)); err != nil {
						t.Fatal(err)
					}
				}
				ours, _, problems := outcome(t, object, list(patches(overlay.Patch{Text: patch, Target: &overlay.Selector{Kind: kind}})...))
				built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/")
				if err != nil {
					if problems == "" {
						t.Fatalf("kustomize refuses it: %v", err)
					}
					return
				}
				theirs, err := built.AsYaml()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(byName(t, string(theirs)), byName(t, ours)); diff != "" || problems != "" {
					t.Errorf("%s (-kustomize +ours):\n%s", problems, diff)
				}
			})
		}
	}
}

// named gives a patch the kind and name that kustomize asks for, beside the target, and does not look at.
func named(t *testing.T, patch string) string {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(patch), &content); err != nil {
		t.Fatal(err)
	}
	metadata, _ := content["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"], content["metadata"], content["kind"], content["apiVersion"] = "any", metadata, "Any", "any/v1"
	out, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
