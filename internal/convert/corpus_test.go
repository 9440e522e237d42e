// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// corpus returns the folder of published bundles beside the repository.
func corpus(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
	found := filepath.Join(dir, "..", "shared", "corpus", "registryv1")
	if _, err := os.Stat(found); err != nil {
		t.Skip("the corpus of published bundles is not beside the repository (../shared/corpus), so nothing is compared with it")
	}
	return found
}

// caseOptions is case.yaml.
type caseOptions struct {
	InstallNamespace    string   `json:"installNamespace"`
	WatchNamespaces     []string `json:"watchNamespaces"`
	CertificateProvider string   `json:"certificateProvider"`
	Config              struct {
		WatchNamespace   string          `json:"watchNamespace"`
		DeploymentConfig json.RawMessage `json:"deploymentConfig"`
	} `json:"config"`
}

// readCase returns the options of a case; a config with unknown fields is refused, as the API would.
func readCase(t *testing.T, dir string) (convert.Options, error) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "case.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var c caseOptions
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return convert.Options{}, err
	}
	if c.Config.WatchNamespace != "" {
		c.WatchNamespaces = []string{c.Config.WatchNamespace}
	}
	provider := registryv1.CertificateProvider(c.CertificateProvider)
	switch provider {
	case "":
		provider = registryv1.CertManager
	case "none":
		provider = ""
	}
	return convert.Options{InstallNamespace: c.InstallNamespace, RegistryV1: registryv1.Options{
		WatchNamespaces: c.WatchNamespaces, CertificateProvider: provider, DeploymentConfig: c.Config.DeploymentConfig,
	}}, nil
}

// objects of a stream, by identity; a stream may hold the same one several times.
type objects map[string][]map[string]any

func (o objects) add(object map[string]any) {
	u := unstructured.Unstructured{Object: object}
	gk := u.GroupVersionKind().GroupKind()
	if convert.ScopeOf(gk) == convert.Cluster {
		u.SetNamespace("") // W4
	}
	key := u.GetAPIVersion() + " " + u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
	o[key] = append(o[key], dropEmpty(object).(map[string]any))
}

// dropEmpty removes empty mappings (O6).
func dropEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			inner = dropEmpty(inner)
			if m, ok := inner.(map[string]any); ok && len(m) == 0 {
				delete(v, key)
				continue
			}
			v[key] = inner
		}
	case []any:
		for i := range v {
			v[i] = dropEmpty(v[i])
		}
	}
	return value
}

func readObjects(t testing.TB, file string) objects {
	t.Helper()
	data, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	out := objects{}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(data))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		if object != nil {
			out.add(object)
		}
	}
}

// toJSON gives numbers one type and undoes sharing.
func toJSON(t testing.TB, object map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func collect(t testing.TB, list []*unstructured.Unstructured) objects {
	t.Helper()
	out := objects{}
	for _, o := range list {
		out.add(toJSON(t, o.Object))
	}
	return out
}

// published is one line of modes.txt.
type published struct{ version, mode string }

func readModes(t testing.TB) map[string]published {
	t.Helper()
	modes, err := os.ReadFile(filepath.Join(corpus(t), "modes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]published{}
	for line := range strings.Lines(string(modes)) {
		fields := strings.Fields(line)
		out[fields[0]] = published{version: fields[1], mode: fields[2]}
	}
	return out
}

func bundleOptions(p published) convert.Options {
	o := convert.Options{InstallNamespace: "install-ns", RegistryV1: registryv1.Options{CertificateProvider: registryv1.CertManager}}
	if p.mode == "OwnNamespace" {
		o.RegistryV1.WatchNamespaces = []string{"install-ns"}
	}
	return o
}

// TestCorpusBundles compares real bundles with what OLM v1 renders of them.
func TestCorpusBundles(t *testing.T) {
	root := corpus(t)
	y := &tally{used: map[int]int{}}
	for name, published := range readModes(t) {
		version := published.version
		t.Run(name, func(t *testing.T) {
			got, err := convert.Convert(os.DirFS(filepath.Join(root, "bundles", name, version)), bundleOptions(published))
			if err != nil {
				t.Fatal(err)
			}
			want := readObjects(t, filepath.Join(root, "expected", name+"__"+version+".yaml"))
			y.compare(t, name, want, collect(t, got.Objects))
		})
	}
	y.report(t)
}

// tally counts what a comparison found: cases equal, and uses of each deviation.
type tally struct {
	equal, differing int
	used             map[int]int
}

func (y *tally) compare(t *testing.T, name string, want, got objects) {
	t.Helper()
	lines := differences(want, got)
	for _, line := range unexplained(name, lines, y.used) {
		t.Error("differs from OLM v1 without a numbered reason:", line)
	}
	y.count(len(lines) == 0)
}

func (y *tally) count(equal bool) {
	if equal {
		y.equal++
	} else {
		y.differing++
	}
}

func (y *tally) report(t *testing.T) {
	t.Helper()
	t.Logf("%d equal, %d differ by deviations %v (number: uses)", y.equal, y.differing, y.used)
}

// TestM21CorpusCases compares small bundles, one rule each, with what OLM v1 renders or refuses.
func TestM21CorpusCases(t *testing.T) {
	root := filepath.Join(corpus(t), "cases")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	y := &tally{used: map[int]int{}}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) { y.corpusCase(t, entry.Name(), filepath.Join(root, entry.Name())) })
	}
	y.report(t)
}

func (y *tally) corpusCase(t *testing.T, name, dir string) {
	o, err := readCase(t, dir)
	var got convert.Result
	if err == nil {
		got, err = convert.Convert(os.DirFS(dir), o)
	}
	_, missing := os.Stat(filepath.Join(dir, "expected.yaml"))
	if number, deviates := refusals[name]; deviates {
		if (missing == nil) == (err == nil) {
			t.Errorf("deviation %d no longer shows: %v", number, err)
		}
		y.used[number]++
		y.count(false)
		return
	}
	switch {
	case missing != nil && err == nil:
		t.Error("rendered what OLM v1 refuses")
	case missing != nil:
		refusal, _ := os.ReadFile(filepath.Join(dir, "expected.err"))
		t.Logf("both refuse\nOLM: %s\nSatchel: %s", refusal, err)
		y.count(true)
	case err != nil:
		t.Error(err)
	default:
		y.compare(t, name, readObjects(t, filepath.Join(dir, "expected.yaml")), collect(t, got.Objects))
	}
}
