// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// allBundles are the own registry+v1 bundles and, where the corpus is present, the published ones, with their options.
func allBundles(t *testing.T) map[string]rendering {
	t.Helper()
	out := maps.Clone(renderings)
	delete(out, "shop-plain")
	if _, err := os.Stat(filepath.Join("..", "..", "..", "shared", "corpus")); err != nil {
		return out
	}
	for name, p := range readModes(t) {
		out[name+"/"+p.version] = rendering{o: bundleOptions(p)}
	}
	return out
}

// open returns the files of one of allBundles.
func (r rendering) open(t *testing.T, name string) fstest.MapFS {
	t.Helper()
	if r.bundle != "" {
		return load(t, r.bundle)
	}
	files := fstest.MapFS{}
	root := os.DirFS(filepath.Join(corpus(t), "bundles", name))
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

// documents are the manifests of a bundle as JSON, in order.
func documents(t *testing.T, files fstest.MapFS) [][]byte {
	t.Helper()
	var out [][]byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasPrefix(name, "manifests/") {
			continue
		}
		reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(files[name].Data)))
		for {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := yaml.YAMLToJSON(document)
			if err != nil {
				t.Fatal(err)
			}
			if string(data) != "null" {
				out = append(out, data)
			}
		}
	}
	return out
}

// rewritten is a bundle with other files as manifests.
func rewritten(files fstest.MapFS, manifests fstest.MapFS) fstest.MapFS {
	out := fstest.MapFS{}
	for name, file := range files {
		if !strings.HasPrefix(name, "manifests/") {
			out[name] = file
		}
	}
	maps.Copy(out, manifests)
	return out
}

// rewritings write the same objects in other ways.
var rewritings = map[string]func(t *testing.T, documents [][]byte) fstest.MapFS{
	"one file each, as JSON, backwards": func(_ *testing.T, documents [][]byte) fstest.MapFS {
		out := fstest.MapFS{}
		for i, document := range documents {
			out[fmt.Sprintf("manifests/%04d.json", len(documents)-i)] = &fstest.MapFile{Data: document, Mode: 0o644}
		}
		return out
	},
	"all in one file of YAML": func(t *testing.T, documents [][]byte) fstest.MapFS {
		var all bytes.Buffer
		for _, document := range documents {
			text, err := yaml.JSONToYAML(document)
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString("# a comment\n---\n")
			all.Write(text)
		}
		return fstest.MapFS{"manifests/all.yml": {Data: append(all.Bytes(), "---\n"...), Mode: 0o644}}
	},
	"all in a list": func(_ *testing.T, documents [][]byte) fstest.MapFS {
		list := `{"apiVersion": "v1", "kind": "List", "items": [` + string(bytes.Join(documents, []byte(","))) + "]}"
		return fstest.MapFS{"manifests/list.json": {Data: []byte(list), Mode: 0o644}}
	},
}

// TestM21WritingDoesNotMatter: the same objects in other files, another syntax and another order render the same.
func TestM21WritingDoesNotMatter(t *testing.T) {
	for name, r := range allBundles(t) {
		t.Run(name, func(t *testing.T) {
			files := r.open(t, name)
			r.o.Limits.FileBytes = 16 << 20
			want, err := convert.Convert(files, r.o)
			if err != nil {
				t.Fatal(err)
			}
			written := documents(t, files)
			for how, write := range rewritings {
				got, err := convert.Convert(rewritten(files, write(t, written)), r.o)
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if diff := cmp.Diff(sorted(t, want.Objects), sorted(t, got.Objects)); diff != "" {
					t.Errorf("%s (-as published +rewritten):\n%s", how, diff)
				}
			}
		})
	}
}

// TestM21OtherNamespace: installing in another namespace is replacing its name in the result, for every bundle: no name and
// no hash depends on it.
func TestM21OtherNamespace(t *testing.T) {
	const here, there = "namespace-here", "namespace-gone"
	for name, r := range allBundles(t) {
		t.Run(name, func(t *testing.T) {
			render := func(namespace string) string {
				o := r.o
				if r.bundle == "" {
					o.RegistryV1.CertificateProvider = registryv1.SelfSigned
				}
				o.RegistryV1.WatchNamespaces = nil
				for _, watched := range r.o.RegistryV1.WatchNamespaces {
					if watched == r.o.InstallNamespace {
						watched = namespace
					}
					o.RegistryV1.WatchNamespaces = append(o.RegistryV1.WatchNamespaces, watched)
				}
				o.InstallNamespace = namespace
				result, err := convert.Convert(r.open(t, name), o)
				if err != nil {
					t.Fatal(err)
				}
				data, err := json.Marshal(result)
				if err != nil {
					t.Fatal(err)
				}
				return string(data)
			}
			if diff := cmp.Diff(strings.ReplaceAll(render(here), here, there), render(there)); diff != "" {
				t.Errorf("(-replaced +rendered):\n%s", diff)
			}
		})
	}
}
