// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/lint"
)

// place is where a problem is and by which rule.
type place struct {
	File string
	Line int
	Rule string
}

// TestPlainV0 has one case for each of RukPak's rules, and whether Satchel accepts the same bundle.
func TestPlainV0(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "
	for name, c := range map[string]struct {
		reason string
		files  map[string]string
		path   string
		want   []place
	}{
		"valid":       {"one object", map[string]string{"manifests/a.yaml": object + "a}"}, "", nil},
		"beside":      {"what lies beside manifests/ is not RukPak's business", map[string]string{"manifests/a.yaml": object + "a}", "README.md": "", "tests/b.yaml": ""}, "", nil},
		"several":     {"documents, JSON and Lists are fine", map[string]string{"manifests/a.yml": object + "a}\n---\n" + object + "b}", "manifests/b.json": `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c"}}]}`}, "", nil},
		"path":        {"the bundle may lie in a folder", map[string]string{"x/manifests/a.yaml": object + "a}"}, "x", nil},
		"no folder":   {"where RukPak looks", map[string]string{"a.yaml": object + "a}"}, "", []place{{"", 0, lint.RulePlainFolder}}},
		"a file":      {"manifests is no folder", map[string]string{"manifests": "x", "a.yaml": object + "a}"}, "", []place{{"", 0, lint.RulePlainFolder}}},
		"nested":      {"flat", map[string]string{"manifests/a.yaml": object + "a}", "manifests/sub/b.yaml": object + "b}"}, "", []place{{"manifests/sub", 0, lint.RulePlainFlat}}},
		"no manifest": {"manifests only", map[string]string{"manifests/a.yaml": object + "a}", "manifests/README.md": "x"}, "", []place{{"manifests/README.md", 0, lint.RulePlainContent}}},
		"hidden":      {"Satchel leaves it out", map[string]string{"manifests/a.yaml": object + "a}", "manifests/.b.yaml": object + "b}"}, "", []place{{"manifests/.b.yaml", 0, lint.RulePlainContent}}},
		"empty file":  {"kubectl apply would fail", map[string]string{"manifests/a.yaml": object + "a}", "manifests/b.yaml": "# nothing\n"}, "", []place{{"manifests/b.yaml", 0, lint.RulePlainContent}}},
		"empty":       {"at least one", map[string]string{"manifests/README.md": "x"}, "", []place{{"", 0, "file"}, {"manifests/README.md", 0, lint.RulePlainContent}}},
		"no name":     {"on which line", map[string]string{"manifests/a.yaml": object + "a}\n---\n\napiVersion: v1\nkind: Secret\n"}, "", []place{{"manifests/a.yaml", 6, "identity"}}},
		"no kind":     {"in JSON too", map[string]string{"manifests/a.json": "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"a\"}}\n\n{\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}"}, "", []place{{"manifests/a.json", 3, "identity"}}},
		"duplicate":   {"one object twice", map[string]string{"manifests/a.yaml": object + "a}\n---\n" + object + "a}"}, "", []place{{"manifests/a.yaml", 5, "duplicate"}}},
		"no YAML":     {"the line that the YAML parser names, which is the one before", map[string]string{"manifests/a.yaml": object + "a}\ndata:\n  a: 1\n a: 2\n"}, "", []place{{"manifests/a.yaml", 5, "syntax"}}},
		"twice a key": {"nearer than its document", map[string]string{"manifests/a.yaml": object + "a}\ndata: {}\ndata: {a: b}\n"}, "", []place{{"manifests/a.yaml", 5, "syntax"}}},
		"equal keys":  {"a warning with its line", map[string]string{"manifests/a.yaml": object + "a}\ndata: {}\ndata: {}\n"}, "", []place{{"manifests/a.yaml", 5, "P7"}}},
		"no such":     {"a folder that is not there", map[string]string{"manifests/a.yaml": object + "a}"}, "y", []place{{"", 0, "file"}}},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			for file, content := range c.files {
				files[file] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
			}
			var got []place
			for _, p := range lint.PlainV0(files, convert.Options{Path: c.path}).Problems {
				if p.Severity != lint.Error && p.Rule != "P7" || p.Message == "" || p.Remedy == "" && p.Rule != "syntax" {
					t.Errorf("%+v", p)
				}
				got = append(got, place{p.File, p.Line, p.Rule})
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}
