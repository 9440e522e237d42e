// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// load copies a bundle of testdata into memory.
func load(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	root := os.DirFS(filepath.Join("testdata", "bundles", name))
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		files[path] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// shuffled lists folders in another order at every look.
type shuffled struct{ fstest.MapFS }

func (s shuffled) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := s.MapFS.ReadDir(name)
	rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	return entries, err
}

// TestM21RenderIsPure: a thousand renders are byte-identical, whatever order files come in, and whatever the number of
// processors, the time zone and the working directory are.
func TestM21RenderIsPure(t *testing.T) {
	bundles := map[string]fstest.MapFS{}
	want := map[string][]byte{}
	for name, r := range renderings {
		bundles[r.bundle] = load(t, r.bundle)
		result, err := convert.Convert(bundles[r.bundle], r.o)
		if err != nil {
			t.Fatal(err)
		}
		want[name] = compact(t, result)
	}
	processors := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(processors) })
	zones := []string{"UTC", "Asia/Tokyo", "America/St_Johns"}
	for i := 0; i < 1000; {
		runtime.GOMAXPROCS(1 + i%3)
		t.Setenv("TZ", zones[i%len(zones)])
		t.Chdir(t.TempDir())
		for name, r := range renderings {
			result, err := convert.Convert(shuffled{bundles[r.bundle]}, r.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := compact(t, result); !bytes.Equal(want[name], got) {
				t.Fatalf("render %d of %s differs (-first +now):\n%s", i, name, cmp.Diff(string(want[name]), string(got)))
			}
			i++
		}
	}
}

func compact(t testing.TB, r convert.Result) []byte {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRefusalsArePure: problems come in the same order as well.
func TestRefusalsArePure(t *testing.T) {
	files := load(t, "shop")
	for _, name := range []string{"a", "b", "c"} {
		files["manifests/"+name+".yaml"] = &fstest.MapFile{Data: []byte("kind: X\nmetadata: {labels: {z: 1, y: 2, x: 3}}\n---\nd: {a: 1, a: 2}")}
	}
	var first string
	for range 100 {
		_, err := convert.Convert(shuffled{files}, convert.Options{InstallNamespace: "shop"})
		if err == nil {
			t.Fatal("not refused")
		}
		if first == "" {
			first = err.Error()
		}
		if diff := cmp.Diff(first, err.Error()); diff != "" {
			t.Fatalf("(-first +now):\n%s", diff)
		}
	}
}

// TestNamesOfFilesDoNotMatter: a bundle is the same set of objects whatever its files are called.
func TestNamesOfFilesDoNotMatter(t *testing.T) {
	for name, r := range renderings {
		files, renamed := load(t, r.bundle), fstest.MapFS{}
		for path, file := range files {
			if folder, base, ok := strings.Cut(path, "/"); ok && folder == "manifests" && !strings.Contains(base, "/") {
				path = "manifests/" + reverse(strings.TrimSuffix(base, filepath.Ext(base))) + filepath.Ext(base)
			}
			renamed[path] = file
		}
		want, err := convert.Convert(files, r.o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := convert.Convert(renamed, r.o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sorted(t, want.Objects), sorted(t, got.Objects)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

func sorted(t testing.TB, objects []*unstructured.Unstructured) []string {
	t.Helper()
	var out []string
	for _, o := range objects {
		data, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(data))
	}
	slices.Sort(out)
	return out
}

// TestNamespacesMetamorphic: installing in another namespace is the same as replacing its name in the result. Names of RBAC
// objects contain none.
func TestNamespacesMetamorphic(t *testing.T) {
	const here, there = "namespace-here", "namespace-gone"
	for name, watch := range map[string][]string{"all": nil, "own": {here}, "single": {"team-a"}, "multi": {"team-a", here}} {
		t.Run(name, func(t *testing.T) {
			o := convert.Options{InstallNamespace: here, RegistryV1: registryv1.Options{CertificateProvider: registryv1.CertManager, WatchNamespaces: watch}}
			first, err := convert.Convert(load(t, "gadget"), o)
			if err != nil {
				t.Fatal(err)
			}
			o.InstallNamespace = there
			o.RegistryV1.WatchNamespaces = nil
			for _, w := range watch {
				o.RegistryV1.WatchNamespaces = append(o.RegistryV1.WatchNamespaces, strings.ReplaceAll(w, here, there))
			}
			second, err := convert.Convert(load(t, "gadget"), o)
			if err != nil {
				t.Fatal(err)
			}
			replaced := strings.ReplaceAll(string(compact(t, first)), here, there)
			if diff := cmp.Diff(replaced, string(compact(t, second))); diff != "" {
				t.Errorf("(-replaced +rendered):\n%s", diff)
			}
		})
	}
}

// TestResultsDoNotShare: changing one object changes no other, for overlays do.
func TestResultsDoNotShare(t *testing.T) {
	for name, r := range renderings {
		result, err := convert.Convert(load(t, r.bundle), r.o)
		if err != nil {
			t.Fatal(err)
		}
		before := make([]string, len(result.Objects))
		for i, o := range result.Objects {
			before[i] = sorted(t, []*unstructured.Unstructured{o})[0]
		}
		for i, o := range result.Objects {
			if got := sorted(t, []*unstructured.Unstructured{o})[0]; got != before[i] {
				t.Fatalf("%s: object %d changed with another one:\n%s", name, i, cmp.Diff(before[i], got))
			}
			scribble(o.Object)
		}
	}
}

// scribble changes every value.
func scribble(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			scribble(inner)
			if _, text := inner.(string); text {
				v[key] = "scribbled"
			}
		}
		v["scribble"] = "x"
	case []any:
		for i, inner := range v {
			scribble(inner)
			if _, text := inner.(string); text {
				v[i] = "scribbled"
			}
		}
	}
}
