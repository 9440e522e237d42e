// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert"
)

// The number at the beginning of a file's name is passed on beside the objects, which it does not change.
func TestRanks(t *testing.T) {
	manifest := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n")}
	}
	const none = 1_000_000_000
	files := fstest.MapFS{
		"2-b.yaml": manifest("b"), "10_a.yaml": manifest("a"), "c.yaml": manifest("c"), "0001.yaml": manifest("d"), "5-folder/e.yaml": manifest("e"),
		"x/007-f.yaml": manifest("f"), "3g.yaml": manifest("g"), "1234567890-h.yaml": manifest("h"), "-1-i.yaml": manifest("i"),
	}
	files["2-b.yaml"].Data = append(files["2-b.yaml"].Data, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b2}\n"...)
	got, err := convert.Convert(files, convert.Options{Format: convert.PlainV0, InstallNamespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	ranks := map[string]int{}
	for i, object := range got.Objects {
		ranks[object.GetName()] = got.Ranks[i]
		if len(object.GetAnnotations()) > 0 {
			t.Errorf("%s was changed: %v", object.GetName(), object.GetAnnotations())
		}
	}
	want := map[string]int{"b": 2, "b2": 2, "a": 10, "c": none, "d": none, "e": none, "f": 7, "g": none, "h": none, "i": none}
	if diff := cmp.Diff(want, ranks); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
