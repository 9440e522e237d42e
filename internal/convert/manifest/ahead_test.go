// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// contents are files of a bundle, by what is in them.
var contents = map[string]string{
	"documents": "kind: A\nmetadata: {name: a}\n---\nkind: A\nmetadata: {name: b}\n", "empty": "", "no object": "--- x\n", "faulty": "kind: A\n---\n'\n---\nkind: B\n",
	"twice": "kind: A\nkind: A\n", "differs": "kind: A\nkind: B\n", "NUL": "kind: \x00", "JSON": `{"kind": "A"}{"kind": "B"}`, "flow": "{kind: A}\n---\nkind: B\n",
	"list": "kind: List\nitems: [{kind: A}, {kind: B}]\n", "aliases": "kind: A\na: &a [1, 2]\nb: [*a, *a]\n", "deep": "a: [[[[[[[[1]]]]]]]]\n",
	"large": "kind: A\n---\nkind: B\na: " + strings.Repeat("x", 130<<10) + "\n---\n'",
}

// TestReadAllIsReadOfEachFile: that files are parsed at once changes nothing, problems and limits included.
func TestReadAllIsReadOfEachFile(t *testing.T) {
	kinds := make([]string, 0, len(contents))
	for kind := range contents {
		kinds = append(kinds, kind)
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same cases each time
	for range 300 {
		files, names := fstest.MapFS{}, []string{"missing.yaml"}
		for i := range random.IntN(8) {
			name := fmt.Sprintf("%d-%s.yaml", i, kinds[random.IntN(len(kinds))])
			kind := strings.TrimSuffix(name[2:], ".yaml")
			files[name], names = &fstest.MapFile{Data: []byte(contents[kind])}, append(names, name)
		}
		names = names[random.IntN(2):]
		limits := manifest.Limits{Documents: 1 + random.IntN(20), Objects: 1 + random.IntN(20), Depth: 5 + random.IntN(10), TotalBytes: int64(1 + random.IntN(1<<18)), Values: 1 + random.IntN(100)}
		if random.IntN(2) == 0 {
			limits = manifest.Limits{}
		}
		one, all := manifest.NewReader(files, limits), manifest.NewReader(files, limits)
		var want []manifest.Manifest
		for _, name := range names {
			want = append(want, one.Read(name)...)
		}
		got := all.ReadAll(names)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%v within %+v: -Read +ReadAll:\n%s", names, limits, diff)
		}
		if diff := cmp.Diff(one.Problems(), all.Problems()); diff != "" {
			t.Fatalf("%v within %+v: problems: -Read +ReadAll:\n%s", names, limits, diff)
		}
		if diff := cmp.Diff(one.Warnings(), all.Warnings()); diff != "" {
			t.Fatalf("%v within %+v: warnings: -Read +ReadAll:\n%s", names, limits, diff)
		}
	}
}
