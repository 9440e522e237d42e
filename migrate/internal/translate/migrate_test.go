// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// samples are the manifests of the command's tests.
const samples = "../plugin/testdata/manifests"

// read reads manifests of which some may be wrong.
func read(data []byte) []manifest.Manifest {
	files := fstest.MapFS{"in.yaml": {Data: data}}
	reader := manifest.NewReader(files, manifest.Limits{})
	found := reader.Read("in.yaml")
	if len(reader.Problems()) > 0 {
		return nil
	}
	return found
}

func sampleFiles(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := fs.Glob(os.DirFS(samples), "*.yaml")
	if err != nil || len(names) < 5 {
		t.Fatalf("there are no samples: %v", err)
	}
	found := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(samples + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = data
	}
	return found
}

var sampleOptions = Options{
	InstallNamespace: "demo", Namespace: "demo", ServiceAccount: "installer",
	Images: map[string]string{},
}

// TestNothingIsDropped adds an unknown field to each mapping of the migrated objects, and checks that it is named.
func TestNothingIsDropped(t *testing.T) {
	tried := 0
	for name, data := range sampleFiles(t) {
		if name == "broken.yaml" {
			continue
		}
		for i, m := range read(data) {
			if m.Object.GetKind() == "CatalogSource" && notFileBased(m.Object) != "" {
				continue // not translated, and the reason is given
			}
			if migrators[kindOf(m.Object)] == nil || len(m.Object.GetLabels()) > 0 && m.Object.GetKind() == "Bundle" {
				continue
			}
			for _, path := range mappings("spec", m.Object.Object["spec"]) {
				manifests := read(data)
				put(manifests[i].Object.Object, path+".unheardOf", "x")
				result, err := Migrate(manifests, sampleOptions)
				said, _ := json.Marshal(result)
				if err != nil {
					said = append(said, err.Error()...)
				}
				if tried++; !strings.Contains(string(said), "unheardOf") {
					t.Errorf("%s: %s: %s.unheardOf is dropped silently", name, place(m), path)
				}
			}
		}
	}
	if tried < 40 {
		t.Errorf("only %d mappings were tried", tried)
	}
}

// mappings are the paths of all mappings below a value, except free-form ones.
func mappings(path string, value any) []string {
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	paths := []string{path}
	for key, below := range object {
		switch key {
		case "matchLabels", "selector", "nodeSelector", "annotations", "limits", "resources":
			continue
		}
		paths = append(paths, mappings(path+"."+key, below)...)
	}
	return paths
}

func put(object map[string]any, path, value string) {
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		object = object[key].(map[string]any) //nolint:errcheck // the path was found in the object
	}
	object[keys[len(keys)-1]] = value
}

// TestInputStays checks that the input is not changed.
func TestInputStays(t *testing.T) {
	for name, data := range sampleFiles(t) {
		manifests, untouched := read(data), read(data)
		_, _ = Migrate(manifests, sampleOptions) //nolint:errcheck // both outcomes are of interest
		got, _ := json.Marshal(manifests)
		want, _ := json.Marshal(untouched)
		if string(got) != string(want) {
			t.Errorf("%s: the input changed:\n%s\n%s", name, got, want)
		}
	}
}

// FuzzMigrate: nothing panics, the outcome is stable, and each refusal has a place.
func FuzzMigrate(f *testing.F) {
	for _, data := range sampleFiles(f) {
		f.Add(data)
		for document := range strings.SplitSeq(string(data), "---\n") {
			f.Add([]byte(document))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		manifests := read(data)
		first, err := Migrate(manifests, sampleOptions)
		second, again := Migrate(manifests, sampleOptions)
		one, _ := json.Marshal(first)
		two, _ := json.Marshal(second)
		if string(one) != string(two) || (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
			t.Errorf("two outcomes:\n%s %v\n%s %v", one, err, two, again)
		}
		for _, item := range first.Items {
			if err == nil && len(item.Objects) == 0 {
				t.Errorf("%s became nothing, without a word", item.From)
			}
		}
	})
}
