// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/inspect"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/preview"
	"github.com/satchel-dev/satchel/internal/spec/values"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// TestChartOptions: each file over those before it, --set over all of them, and what --api-versions names beside what
// Kubernetes has.
func TestChartOptions(t *testing.T) {
	first := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(first, []byte("a: {b: 1, c: 1}\nd: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := bundle.ChartOptions{
		ReleaseName: "shop", Files: []string{first, "-"}, Set: []string{"a.e=x", "a.c=3,f=true"},
		KubeVersion: "v1.30.1", APIVersions: []string{"example.org/v1/Gadget"},
	}
	if err := o.Read(strings.NewReader("a: {c: 2}")); err != nil {
		t.Fatal(err)
	}
	got := o.Options()
	want := map[string]any{"a": map[string]any{"b": 1.0, "c": int64(3), "e": "x"}, "d": 1.0, "f": true}
	if diff := cmp.Diff(want, got.Values); diff != "" {
		t.Error(diff)
	}
	if got.ReleaseName != "shop" || got.Capabilities.KubeVersion != "v1.30.1" {
		t.Errorf("%+v", got)
	}
	served := strings.Join(got.Capabilities.APIVersions, " ")
	if !strings.Contains(served, "example.org/v1/Gadget") || !strings.Contains(served, " apps/v1 ") {
		t.Error(served)
	}
	if none := (&bundle.ChartOptions{}); none.Given() || none.Options().Capabilities.APIVersions != nil || !o.Given() {
		t.Error("what was not given is given")
	}
}

func TestChartOptionsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.yaml")
	if err := os.WriteFile(broken, []byte("a: 1\nb: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const folder = bundles + "plain"
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"no file":      {reason: "which file?", args: []string{"--values", filepath.Join(dir, "none.yaml")}, want: "reading --values: open " + filepath.Join(dir, "none.yaml") + ": no such file or directory"},
		"broken":       {reason: "where?", args: []string{"--values", broken}, want: "reading --values: " + broken + ": line 2: this is not valid YAML"},
		"no value":     {reason: "what shall it be?", args: []string{"--set", "a"}, want: `--set a: key "a" has no value`},
		"input twice":  {reason: "it can be read once", args: []string{"--values", "-", "--config", "-"}, want: "only one of -f, --config and --values can be standard input"},
		"inputs twice": {reason: "it can be read once", args: []string{"--values", "-", "--values", "-"}, want: "only one of -f, --config and --values can be standard input"},
	} {
		got := satchel(t, append([]string{"render", folder, "--install-namespace", "demo"}, tc.args...)...)
		if got.Code != kit.ExitError || !strings.Contains(got.Err, tc.want) {
			t.Errorf("%s (%s): want %q, got %s", name, tc.reason, tc.want, got)
		}
	}
}

// TestChartFlagsOfOtherFormats checks the warning about flags that have no effect on a bundle of another format.
func TestChartFlagsOfOtherFormats(t *testing.T) {
	got := satchel(t, "render", bundles+"plain", "--install-namespace", "demo", "--set", "a=b")
	const want = "the bundle is plain+v0: --release-name, --values, --values-files, --set, --kube-version, --api-versions and --schema-validation have no effect on it"
	if got.Code != kit.ExitOK || !strings.Contains(got.Err, want) {
		t.Errorf("%s", got)
	}
}

// TestI8PreviewsAreScrubbed puts a secret everywhere in a preview: it is shown nowhere, and other values stay.
func TestI8PreviewsAreScrubbed(t *testing.T) {
	const secret = "s3cr3t-c4n4ry"
	var s values.Scrubber
	s.AddDocument("a: " + secret + "\nport: 54321\n")
	object := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"list": []any{secret, int64(54321), int64(1)}, "kept": "x"}}}
	}
	v := &preview.Preview{
		Warnings: []string{"about " + secret}, Violations: []preview.ViolationPreview{{Message: secret}}, Impact: preview.ImpactPreview{Images: []preview.ImagePreview{{To: "r/" + secret}}},
		Objects: []preview.ObjectPreview{{
			Kind: "ConfigMap", Failed: secret, Fields: []fields.Change{{Path: ".data", Before: map[string]any{"x": secret}, After: int64(54321)}},
			Before: object(), After: object(), Desired: object().Object,
		}},
	}
	v.Scrub(&s)
	shown, err := json.Marshal([]any{v, v.Objects[0].Before.Object, v.Objects[0].After.Object, v.Objects[0].Desired, v.Objects[0].Unified()})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(shown); strings.Contains(text, secret) || strings.Contains(text, "54321") || !strings.Contains(text, `"kept":"x"`) || !strings.Contains(text, `"kind":"ConfigMap"`) {
		t.Error(text)
	}
	if list, _, _ := unstructured.NestedSlice(v.Objects[0].After.Object, "data", "list"); !reflect.DeepEqual(list, []any{values.Redacted, values.Redacted, int64(1)}) {
		t.Errorf("%v", list)
	}
}

// chartFolder is a chart on the disk.
func chartFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml":           "apiVersion: v2\nname: shop\nversion: 1.2.3\nappVersion: \"4.5\"\ndescription: Sells things.\nkubeVersion: \">=1.20.0-0\"\n",
		"values.yaml":          "image: {tag: v1}\n",
		"values.schema.json":   `{"type": "object", "properties": {"image": {"type": "object", "properties": {"tag": {"type": "string"}}}}}`,
		"templates/cm.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {tag: {{ .Values.image.tag | quote }}, kube: {{ .Capabilities.KubeVersion.Version | quote }}, gadget: {{ .Capabilities.APIVersions.Has \"example.org/v1/Gadget\" | quote }}}\n",
		"templates/job.yaml":   "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {helm.sh/hook: \"pre-install,pre-upgrade\", helm.sh/hook-weight: \"-5\"}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers: [{name: a, image: \"example.org/migrate:v1\"}]\n",
		"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 0.1.0\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRenderChart: values, release and capabilities of the flags reach the templates.
func TestRenderChart(t *testing.T) {
	dir := chartFolder(t)
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"as it is": {want: []string{"name: shop\n", "tag: v1\n", "gadget: \"false\""}},
		"flags": {args: []string{"--release-name", "eu", "--set", "image.tag=v2", "--kube-version", "v1.30.1", "--api-versions", "example.org/v1/Gadget"},
			want: []string{"name: eu\n", "tag: v2\n", "kube: v1.30.1", "gadget: \"true\""}},
	} {
		got := satchel(t, append([]string{"render", dir, "--install-namespace", "demo"}, tc.args...)...)
		if got.Code != kit.ExitOK {
			t.Fatalf("%s: %s", name, got)
		}
		for _, want := range tc.want {
			if !strings.Contains(got.Out, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, got.Out)
			}
		}
	}
	got := satchel(t, "render", dir, "--install-namespace", "demo", "--set", "image.tag=8080")
	if got.Code != kit.ExitError || !strings.Contains(got.Err, "image.tag") && !strings.Contains(got.Err, "/image/tag") {
		t.Errorf("the schema says nothing: %s", got)
	}
}

// TestFluxF28SchemaValidation: a schema that does not allow the values, or refers to a URL, can be left out of a chart in a folder as well.
func TestFluxF28SchemaValidation(t *testing.T) {
	for name, schema := range map[string]string{
		"values":        `{"properties": {"image": {"properties": {"tag": {"type": "integer"}}}}}`,
		"remote schema": `{"properties": {"image": {"$ref": "https://example.org/image.json"}}}`,
	} {
		dir := chartFolder(t)
		if err := os.WriteFile(filepath.Join(dir, "values.schema.json"), []byte(schema), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"render", "validate"} {
			for use, want := range map[string]struct {
				code int
				err  string
			}{
				"":        {kit.ExitError, "use --schema-validation Warn or None"},
				"Enforce": {kit.ExitError, ""},
				"Warn":    {kit.ExitOK, "--schema-validation is Warn"},
				"None":    {kit.ExitOK, ""},
			} {
				args := []string{command, dir, "--install-namespace", "demo"}
				if use != "" {
					args = append(args, "--schema-validation", use)
				}
				got := satchel(t, args...)
				refused := got.Code != kit.ExitOK
				if text := got.Err + got.Out; refused != (want.code != kit.ExitOK) || name == "remote schema" && !strings.Contains(text, want.err) {
					t.Errorf("%s with %s %q: %s", name, command, use, got)
				}
			}
		}
	}
}

// TestInspectChart shows what a chart is.
func TestInspectChart(t *testing.T) {
	got := satchel(t, "inspect", chartFolder(t))
	if got.Code != kit.ExitOK {
		t.Fatal(got)
	}
	for _, want := range []string{
		"Sells things.", "Format:              helm", "Chart:               shop 1.2.3", "App version:         4.5", "Charts in it:        db 0.1.0",
		"Schema of values:    values.schema.json", "Hooks (1):", "Job operators/migrate: pre-install, pre-upgrade, weight -5, before-hook-creation", "example.org/migrate:v1",
	} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q is missing in\n%s", want, got.Out)
		}
	}
	var value inspect.Description
	if err := json.Unmarshal([]byte(satchel(t, "inspect", chartFolder(t), "-o", "json").Out), &value); err != nil || value.Chart == nil || !value.Chart.ValuesSchema || len(value.Chart.Hooks) != 1 {
		t.Errorf("%v, %+v", err, value.Chart)
	}
}

// TestChartOfRegistry: a chart that was packaged by Helm and pushed as helm push does needs no path.
func TestChartOfRegistry(t *testing.T) {
	noLogins(t)
	server := upstream.NewRegistry(t.Context())
	t.Cleanup(server.Close)
	c := &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "shop", Version: "1.2.3"},
		Templates: []*common.File{{Name: "templates/a.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n")}},
	}
	file, err := chartutil.Save(c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packaged, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.PushChart(t.Context(), "charts/shop:1.2.3", packaged, c.Metadata); err != nil {
		t.Fatal(err)
	}
	ref := server.Host() + "/charts/shop:1.2.3"
	for _, args := range [][]string{{}, {"--format", "helm"}, {"--path", "shop"}} {
		got := satchel(t, append([]string{"render", ref, "--insecure", "--install-namespace", "shop", "--release-name", "x"}, args...)...)
		if got.Code != kit.ExitOK || !strings.Contains(got.Out, "name: x") {
			t.Errorf("%v: %s", args, got)
		}
	}
	if got := satchel(t, "inspect", ref, "--insecure"); got.Code != kit.ExitOK || !strings.Contains(got.Out, "1.2.3") {
		t.Errorf("%s", got)
	}
}
