// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write docs/reference instead of comparing it")

const root = "../../.."

// definitions are the files of all CRDs, also of those that are no part of the default installation.
func definitions(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/config/crd/bases/*.yaml", "/config/rollouts/crd/satchel.dev_*.yaml"} {
		files, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, files...)
	}
	if len(found) != 6 {
		t.Fatalf("there are %d definitions, want 6: %v", len(found), found)
	}
	return found
}

// pages are all pages of docs/reference, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range definitions(t) {
		name, page, err := Fields(read(t, file))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = page
	}
	reasons, err := Reasons(read(t, root+"/api/v1alpha1/conditions.go"), map[string]string{
		"SucceededReason": meta.SucceededReason, "ProgressingReason": meta.ProgressingReason, "ReadyCondition": meta.ReadyCondition,
		"ProgressingWithRetryReason": meta.ProgressingWithRetryReason, "SuspendedReason": meta.SuspendedReason,
	})
	if err != nil {
		t.Fatal(err)
	}
	found["reasons.md"] = reasons
	return found
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestReferenceIsCurrent compares docs/reference with the code.
func TestReferenceIsCurrent(t *testing.T) {
	dir := root + "/docs/reference"
	if *update {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range pages(t) {
		file := filepath.Join(dir, name)
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, string(read(t, file))); diff != "" {
			t.Errorf("docs/reference/%s is not current; update it with make generate\n-want +got:\n%s", name, diff)
		}
		if strings.Contains(want, " |  |\n") || strings.Contains(want, "`` |") {
			t.Errorf("docs/reference/%s has a field or reason without a name or a meaning", name)
		}
	}
}

// TestEveryFieldHasARow wants one row for each field of each CRD, with a description, but for the fields of conditions and
// of the inline source.
func TestEveryFieldHasARow(t *testing.T) {
	total := 0
	for _, file := range definitions(t) {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(read(t, file), &crd); err != nil {
			t.Fatal(err)
		}
		_, page, err := Fields(read(t, file))
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]int{}
		for _, row := range regexp.MustCompile("(?m)^\\| \\[?`([a-zA-Z0-9.]+)`.*[^ |] \\|$").FindAllStringSubmatch(page, -1) {
			have[row[1]]++
		}
		for _, path := range paths(crd.Spec.Names.Kind, *crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "") {
			total++
			if have[path] != 1 {
				t.Errorf("the page of %s has %d rows about %s, want one", crd.Spec.Names.Kind, have[path], path)
			}
		}
	}
	if total < 250 {
		t.Errorf("only %d fields were found", total)
	}
}

// paths are the fields of spec and status, without those that are described elsewhere.
func paths(kind string, part schema, at string) []string {
	var found []string
	for name, field := range part.Properties {
		path := strings.TrimPrefix(at+"."+name, ".")
		inSpecOrStatus := strings.HasPrefix(path, "spec") || strings.HasPrefix(path, "status")
		if !inSpecOrStatus {
			continue
		}
		if at != "" {
			found = append(found, path)
		}
		if elsewhere[kind][path] == "" && path != conditions {
			found = append(found, paths(kind, element(field), path)...)
		}
	}
	return found
}

// TestFields shows what a page says about defaults, limits and rules.
func TestFields(t *testing.T) {
	_, page, err := Fields([]byte(`
metadata: {name: tests.example.org}
spec:
  group: example.org
  names: {kind: Test, plural: tests}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        description: Test is a kind.
        properties:
          spec:
            type: object
            required: [names]
            x-kubernetes-validations:
            - {rule: "true", message: one of a and b}
            properties:
              mode: {type: string, default: Fast, enum: [Fast, Slow], description: Mode of work.}
              count: {type: integer, minimum: 1, maximum: 5, description: Count of it.}
              wait: {type: string, maxLength: 32, description: Wait is a time.,
                x-kubernetes-validations: [{rule: "duration(self) > duration('1s')", message: must be a duration}]}
              names:
                type: array
                maxItems: 3
                description: Names of a | b.
                items: {type: string, maxLength: 9}
              part:
                type: array
                description: Part has fields.
                items:
                  type: object
                  description: Entry.
                  x-kubernetes-validations:
                  - {rule: has(self.x)}
                  properties: {x: {type: string, description: X of it.}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for reason, want := range map[string]string{
		"default and values":    "| `spec.mode` | string | `Fast` | one of `Fast`, `Slow` | Mode of work. |\n",
		"numbers":               "| `spec.count` | integer |  | 1 to 5 | Count of it. |\n",
		"length of a duration":  "| `spec.wait` | string |  | must be a duration | Wait is a time. |\n",
		"required, and entries": "| `spec.names` | list of string | required | at most 3 entries; each at most 9 characters | Names of a \\| b. |\n",
		"link to a section":     "| [`spec.part`](#specpart) | list of object |  |  | Part has fields. |\n",
		"rule of an object":     "\nRules of `spec`:\n\n- one of a and b\n",
		"section":               "\n### spec.part\n\n| Field |",
		"rule without message":  "\nRules of `spec.part`:\n\n- `has(self.x)`\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s: the page lacks %q:\n%s", reason, want, page)
		}
	}
}
