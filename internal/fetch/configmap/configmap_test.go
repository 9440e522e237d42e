// SPDX-License-Identifier: Apache-2.0

package configmap

import (
	"context"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func digest(t *testing.T, o Options) string {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := f.Resolve(context.Background())
	if err != nil || resolved.Pinned {
		t.Fatalf("%+v, %v", resolved, err)
	}
	return resolved.Digest
}

func TestDigestIsOfNamesAndContent(t *testing.T) {
	base := digest(t, Options{Name: "a", Data: map[string]string{"x": "1", "y": "2"}})
	cases := map[string]struct {
		reason string
		o      Options
		same   bool
	}{
		"Again":   {"maps have no order", Options{Data: map[string]string{"y": "2", "x": "1"}}, true},
		"Renamed": {"the object's name is not content", Options{Name: "b", Data: map[string]string{"x": "1", "y": "2"}}, true},
		"Binary":  {"the same files in the other field", Options{Data: map[string]string{"x": "1"}, BinaryData: map[string][]byte{"y": []byte("2")}}, true},
		"Content": {"other bytes", Options{Data: map[string]string{"x": "1", "y": "3"}}, false},
		"Name":    {"other file", Options{Data: map[string]string{"x": "1", "z": "2"}}, false},
		"Moved":   {"the same letters in other places", Options{Data: map[string]string{"x": "1y2", "y": ""}}, false},
		"Empty":   {"no files", Options{}, false},
		"Joined":  {"the same letters in one file", Options{Data: map[string]string{"x": "1y2"}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := digest(t, tc.o); (got == base) != tc.same {
				t.Errorf("%s: %s", tc.reason, got)
			}
		})
	}
}

func TestFetch(t *testing.T) {
	o := Options{Name: "m", Data: map[string]string{"a.yaml": "1"}, BinaryData: map[string][]byte{"b": {0, 1}}}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := fetch.NewTree(t.TempDir(), fetch.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	r := fetch.Resolved{Digest: digest(t, o)}
	got, err := f.Fetch(context.Background(), r, tree)
	if err != nil || got != r {
		t.Fatalf("%+v, %v", got, err)
	}
	files := map[string]string{}
	for _, name := range []string{"a.yaml", "b"} {
		data, err := fs.ReadFile(tree.FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(data)
	}
	if diff := cmp.Diff(map[string]string{"a.yaml": "1", "b": "\x00\x01"}, files); diff != "" {
		t.Error(diff)
	}
	if _, err := f.Fetch(context.Background(), fetch.Resolved{Digest: "sha256:other"}, tree); fetch.ReasonOf(err) != fetch.Moved {
		t.Errorf("other content than resolved: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	if _, err := New(Options{Data: map[string]string{"a": ""}, BinaryData: map[string][]byte{"a": nil}}); fetch.ReasonOf(err) != fetch.InvalidContent {
		t.Errorf("a key in both fields: %v", err)
	}
	o := Options{Data: map[string]string{"../a": ""}}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := fetch.NewTree(t.TempDir(), fetch.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	if _, err := f.Fetch(context.Background(), fetch.Resolved{Digest: digest(t, o)}, tree); fetch.ReasonOf(err) != fetch.InvalidContent {
		t.Errorf("a key that Kubernetes would refuse: %v", err)
	}
}
