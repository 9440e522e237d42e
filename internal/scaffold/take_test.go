// SPDX-License-Identifier: Apache-2.0

package scaffold_test

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/scaffold"
)

const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func tree(pairs ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1]), Mode: 0o644}
	}
	return files
}

// TestTakeSeveral separates folders by their names, and names the files that it leaves out.
func TestTakeSeveral(t *testing.T) {
	linked := tree("b.yaml", object, "notes.txt", "x", ".hidden/c.yaml", object)
	linked["link.yaml"] = &fstest.MapFile{Data: []byte("b.yaml"), Mode: fs.ModeSymlink | 0o777}
	b, err := scaffold.Take([]scaffold.Source{{Name: "x/app", Files: tree("a.yaml", object)}, {Name: "db", Files: linked}, {Name: "c.yaml", Files: tree("c.yaml", object), File: "c.yaml"}}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(slices.Sorted(maps.Keys(b.Files)), " "); got != "manifests/app/a.yaml manifests/c.yaml manifests/db/b.yaml" || b.Format != convert.PlainV0 {
		t.Errorf("taken is %s, as %s", got, b.Format)
	}
	notes := strings.Join(b.Notes, "\n")
	for _, want := range []string{"link.yaml is no regular file", "notes.txt", ".hidden/c.yaml"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in the notes:\n%s", want, notes)
		}
	}
}

// TestTakeIsBounded checks that no more is read than a bundle may contain.
func TestTakeIsBounded(t *testing.T) {
	large := strings.Repeat("#", 33<<20)
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"large":          {tree("kustomization.yaml", "resources: []", "a", large, "b", large), "holds more than 64 MiB"},
		"nothing":        {tree("a.txt", ""), "no manifests were found"},
		"broken project": {tree("PROJECT", "]["), "the file PROJECT of it cannot be read as YAML"},
		"empty project":  {tree("PROJECT", "projectName: x\n"), "with neither bundle/manifests nor config/default"},
	} {
		_, err := scaffold.Take([]scaffold.Source{{Name: "it", Files: c.files}}, "", "")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
