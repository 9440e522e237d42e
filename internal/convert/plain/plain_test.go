// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/plain"
)

func object(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

func inJSON(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, name)
}

// TestOrder shows what is read of a tree, and in which order: that of the files' paths, then of the documents.
func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		files   map[string]string
		want    string
		warning string
	}{
		"files":        {"by name, whatever the order on the disk", map[string]string{"b.yaml": object("b"), "a.yml": object("a"), "c.json": inJSON("c")}, "a b c", ""},
		"numbers":      {"as texts: authors write 02", map[string]string{"10-b.yaml": object("b"), "02-a.yaml": object("a"), "9-c.yaml": object("c")}, "a b c", ""},
		"nested":       {"folders among files, by the whole path", map[string]string{"manifests/b/x.yaml": object("bx"), "manifests/b.yaml": object("b"), "manifests/a/z/y.yaml": object("azy"), "manifests/c.yaml": object("c")}, "azy b bx c", ""},
		"the folder":   {"manifests/ alone counts where there is one", map[string]string{"manifests/a.yaml": object("a"), "b.yaml": object("b"), "deploy/c.yaml": object("c")}, "a", ""},
		"no folder":    {"without it all does", map[string]string{"deploy/c.yaml": object("c"), "b.yaml": object("b")}, "b c", ""},
		"documents":    {"as they stand in the file", map[string]string{"a.yaml": object("z") + "---\n" + object("a") + "---\n# nothing\n---\n" + object("m")}, "z a m", ""},
		"JSON stream":  {"several values, one after the other", map[string]string{"a.json": inJSON("z") + inJSON("a") + "\n" + inJSON("m")}, "z a m", ""},
		"JSON as YAML": {"a suffix is no promise", map[string]string{"a.yaml": inJSON("z") + "\n---\n" + inJSON("a")}, "z a", ""},
		"List":         {"flattened in place", map[string]string{"a.yaml": object("a") + "---\napiVersion: v1\nkind: List\nitems:\n- " + indented(object("c")) + "- " + indented(object("b")) + "---\n" + object("d")}, "a c b d", ""},
		"List, JSON":   {"in JSON as well, within Lists too", map[string]string{"a.json": `{"kind":"List","items":[` + inJSON("b") + `,{"kind":"List","items":[` + inJSON("a") + `]}]}`}, "b a", ""},
		"typed list":   {"its items inherit kind and version", map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: b}\n- metadata: {name: a}\n"}, "b a", ""},
		"left out": {"hidden ones and others, with a warning", map[string]string{"a.yaml": object("a"), ".b.yaml": object("b"), ".git/c.yaml": object("c"), "README.md": "x", "run.sh": ""}, "a",
			"not manifests by name (.yaml, .yml, .json), left out: .b.yaml, .git/, README.md, run.sh"},
	} {
		t.Run(name, func(t *testing.T) {
			bundle, problems := plain.Parse(tree(c.files), manifest.Limits{})
			if problems != nil {
				t.Fatal(problems)
			}
			var names []string
			for _, m := range bundle.Manifests {
				if m.Object.GetKind() != "ConfigMap" || m.Object.GetAPIVersion() != "v1" {
					t.Errorf("%v", m.Object)
				}
				names = append(names, m.Object.GetName())
			}
			if diff := cmp.Diff(c.want, strings.Join(names, " ")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
			if got := strings.Join(bundle.Warnings, "\n"); got != c.warning {
				t.Errorf("%s: it warns: %q", c.reason, got)
			}
		})
	}
}

// TestRefused shows that everything wrong is said at once, with its place.
func TestRefused(t *testing.T) {
	_, problems := plain.Parse(tree(map[string]string{
		"manifests/a.yaml":     object("a") + "---\nkind: Secret\nmetadata: {name: b}\n",
		"manifests/sub/b.json": `{"apiVersion":"v1","kind":"Secret"}`,
		"manifests/sub/c.yaml": "a: [",
		"manifests/z.yaml":     "- a\n",
	}), manifest.Limits{})
	var places []string
	for _, p := range problems {
		places = append(places, fmt.Sprintf("%s %d %s", p.File, p.Document, p.Rule))
	}
	want := []string{"manifests/sub/c.yaml 1 syntax", "manifests/z.yaml 1 identity", "manifests/a.yaml 2 identity", "manifests/sub/b.json 1 identity"}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, problems := plain.Parse(tree(map[string]string{"manifests/README.md": "x", "a.yaml": object("a")}), manifest.Limits{}); len(problems) != 1 || !strings.Contains(problems[0].Message, "no manifest was found") {
		t.Errorf("%v", problems)
	}
}

func tree(content map[string]string) fstest.MapFS {
	files := fstest.MapFS{}
	for name, text := range content {
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return files
}

// indented is an object as an item of a list.
func indented(text string) string {
	return strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}
