// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// inProcess runs the jobs without a process, through the same encoding.
type inProcess struct{}

func (inProcess) Run(_ context.Context, request worker.Request) ([]byte, error) {
	return jobs.Handlers()[request.Kind](child.Input{Data: request.Data, File: request.File})
}

// pack packs files for the time of a test.
func pack(t testing.TB, files fs.FS) jobs.Files {
	t.Helper()
	write, read, err := packed.Temporary(t.TempDir(), "a-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = read.Close() })
	index, err := packed.Pack(t.Context(), files, write, packed.Limits{Bytes: 1 << 30, FileBytes: 1 << 30, Entries: 100_000})
	if err = errors.Join(err, write.Close()); err != nil {
		t.Fatal(err)
	}
	return jobs.Files{File: read, Index: index}
}

// requireEqual converts a bundle in both ways and compares result and error, including the type of each number.
func requireEqual(t *testing.T, runner jobs.Runner, files fs.FS, o convert.Options) {
	t.Helper()
	want, wantErr := convert.Convert(files, o)
	converted, err := jobs.Convert(t.Context(), runner, "tenant", jobs.Conversion{Files: pack(t, files), Options: o})
	if wantErr != nil {
		if diff := cmp.Diff(wantErr, err); diff != "" {
			t.Errorf("error (-in process +worker):\n%s", diff)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := converted.Result()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-in process +worker):\n%s", diff)
	}
}

// bundles are those of the tests of package convert.
const bundles = "../../convert/testdata/bundles"

var all = overlay.Options{Processors: []overlay.Processor{
	{Patch: &overlay.Patch{Text: "metadata: {annotations: {patched: merge, size: '${size:=small}'}}", Target: &overlay.Selector{Kind: "Deployment|StatefulSet"}}},
	{Names: &overlay.Names{Prefix: "a-", Suffix: "-b"}},
	{Images: []overlay.Image{{Name: "quay.io/example/press", NewTag: "2"}}},
	{Variables: &overlay.Variables{Given: map[string]string{"region": "us"}, Read: map[string]string{"password": "hunter2"}}},
	{Metadata: &overlay.Metadata{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b"}}},
	{ImageRewrites: []overlay.Rewrite{{From: "quay.io/example", To: "mirror.example.org/q"}}},
}}

// TestWorkersConvertAsInProcess: every bundle of package convert, of each format, without overlays and with all of them.
func TestWorkersConvertAsInProcess(t *testing.T) {
	names, err := os.ReadDir(bundles)
	if err != nil || len(names) < 4 {
		t.Fatalf("%d bundles, %v", len(names), err)
	}
	for _, name := range names {
		for with, adapted := range map[string]overlay.Options{"plain": {}, "overlays": all} {
			t.Run(name.Name()+"-"+with, func(t *testing.T) {
				requireEqual(t, inProcess{}, os.DirFS(filepath.Join(bundles, name.Name())), convert.Options{
					InstallNamespace: "tenant", Overlay: adapted,
					RegistryV1: registryv1.Options{CertificateProvider: registryv1.SelfSigned},
					Helm:       helm.Options{ReleaseName: "press", Values: map[string]any{"replicas": float64(3), "text": "3", "list": []any{true, nil, 1.5, map[string]any{}}}},
				})
			})
		}
	}
}

// TestWorkersConvertTheCorpusAsInProcess: every published bundle, and every case with its options.
func TestWorkersConvertTheCorpusAsInProcess(t *testing.T) {
	root := corpus(t)
	for _, dir := range folders(t, filepath.Join(root, "bundles", "*", "*")) {
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			requireEqual(t, inProcess{}, os.DirFS(dir), convert.Options{
				InstallNamespace: "install-ns", RegistryV1: registryv1.Options{CertificateProvider: registryv1.CertManager},
			})
		})
	}
	for _, dir := range folders(t, filepath.Join(root, "cases", "*")) {
		t.Run(filepath.Base(dir), func(t *testing.T) { requireEqual(t, inProcess{}, os.DirFS(dir), caseOptions(t, dir)) })
	}
}

// corpus returns the folder of published bundles beside the repository.
func corpus(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs("../../../../shared/corpus/registryv1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); err != nil {
		t.Skip("the corpus of published bundles is not beside the repository (../shared/corpus), so nothing is compared with it")
	}
	return root
}

func folders(t testing.TB, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %d, %v", pattern, len(found), err)
	}
	return found
}

// caseOptions are those of case.yaml, as far as they can be read.
func caseOptions(t *testing.T, dir string) convert.Options {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "case.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		InstallNamespace    string   `json:"installNamespace"`
		WatchNamespaces     []string `json:"watchNamespaces"`
		CertificateProvider string   `json:"certificateProvider"`
		Config              struct {
			DeploymentConfig json.RawMessage `json:"deploymentConfig"`
		} `json:"config"`
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		t.Skip("the options cannot be read: ", err)
	}
	return convert.Options{InstallNamespace: c.InstallNamespace, RegistryV1: registryv1.Options{
		WatchNamespaces: c.WatchNamespaces, CertificateProvider: registryv1.CertificateProvider(c.CertificateProvider), DeploymentConfig: c.Config.DeploymentConfig,
	}}
}

// numbers holds values that an encoding may confuse.
const numbers = `{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"n"},"spec":{
"integer":3,"whole":3.0,"large":9223372036854775807,"small":-9223372036854775808,"beyond":1e300,"fraction":0.1,"negative":-0.5,
"empty":{},"none":[],"null":null,"text":"3","binary":"\u0000\u00ff","nested":[[],[{}],[[null]]]}}`

// TestValuesSurvive: the type of each number, empty and absent containers, objects with a scope that only the cluster
// knows.
func TestValuesSurvive(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "manifests"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifests", "1-a.json"), []byte(numbers), 0o600); err != nil {
		t.Fatal(err)
	}
	requireEqual(t, inProcess{}, os.DirFS(dir), convert.Options{Format: convert.PlainV0, InstallNamespace: "tenant"})
	converted, err := jobs.Convert(t.Context(), inProcess{}, "tenant", jobs.Conversion{
		Files: pack(t, os.DirFS(dir)), Options: convert.Options{Format: convert.PlainV0, InstallNamespace: "tenant"},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := converted.Result()
	if err != nil || len(result.Undecided) != 1 || result.Undecided[0] != result.Objects[0] {
		t.Errorf("the undecided object is another one: %v", err)
	}
	if converted.Values != 25 {
		t.Errorf("%d values", converted.Values)
	}
}

// TestProblemsSurvive: all problems, and whether a retry may help.
func TestProblemsSurvive(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), []byte("kind: [\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := pack(t, os.DirFS(dir))
	o := convert.Options{Format: convert.PlainV0, InstallNamespace: "tenant"}
	_, err := jobs.Convert(t.Context(), inProcess{}, "tenant", jobs.Conversion{Files: files, Options: o})
	var refused *convert.Error
	if !errors.As(err, &refused) || !refused.Permanent() || len(refused.Problems) != 3 {
		t.Errorf("%v", err)
	}
	if err := files.File.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = jobs.Convert(t.Context(), inProcess{}, "tenant", jobs.Conversion{Files: files, Options: o})
	if !errors.As(err, &refused) || refused.Permanent() {
		t.Errorf("a file that cannot be read now: %v", err)
	}
}

// TestCapabilitiesAreAskedForCharts: and for no other format.
func TestCapabilitiesAreAskedForCharts(t *testing.T) {
	for bundle, want := range map[string]int{"press": 1, "kiosk": 0, "shop": 0, "gadget": 0} {
		asked := 0
		converted, err := jobs.Convert(t.Context(), inProcess{}, "tenant", jobs.Conversion{
			Files:   pack(t, os.DirFS(filepath.Join(bundles, bundle))),
			Options: convert.Options{InstallNamespace: "tenant", RegistryV1: registryv1.Options{CertificateProvider: registryv1.SelfSigned}},
			Capabilities: func(context.Context) (helm.Capabilities, []string, error) {
				asked++
				return helm.Capabilities{KubeVersion: "v1.34.1"}, nil, nil
			},
		})
		if err != nil || asked != want || converted.Content == "" {
			t.Errorf("%s: asked %d times, want %d: %v", bundle, asked, want, err)
		}
	}
	_, err := jobs.Convert(t.Context(), inProcess{}, "tenant", jobs.Conversion{
		Files: pack(t, os.DirFS(filepath.Join(bundles, "press"))), Options: convert.Options{InstallNamespace: "tenant"},
		Capabilities: func(context.Context) (helm.Capabilities, []string, error) {
			return helm.Capabilities{}, nil, errors.New("down")
		},
	})
	if err == nil || !strings.Contains(err.Error(), "down") {
		t.Errorf("got %v", err)
	}
}
