// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
)

const shownValues = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '{{ .Values.a }}', b: '{{ .Values.b }}', c: '{{ .Values.c }}', d: '{{ .Values.d }}'}\n"

// TestValuesFiles: files of the bundle are merged over the values of the chart, and values of the options over them.
func TestValuesFiles(t *testing.T) {
	inFolder := tree("charts/x/Chart.yaml", chartYAML, "charts/x/templates/a.yaml", shownValues, "charts/x/values.yaml", "{a: 1, b: 1, c: 1, d: 1}",
		"env/first.yaml", "{b: 2, c: 2, d: 2}", "env/second.yaml", "{c: 3, d: 3}", "env/list.yaml", "[a]", "env/broken.yaml", "a: 1\nb: CANARY: 2\n", "env/empty.yaml", "", "env/README.md", "")
	inFolder["env/link.yaml"] = &fstest.MapFile{Data: []byte("first.yaml"), Mode: fs.ModeSymlink | 0o777}
	packaged := tree("x/Chart.yaml", chartYAML, "x/templates/a.yaml", shownValues, "x/values.yaml", "{a: 1, b: 1, c: 1, d: 1}", "x/values-prod.yaml", "{b: 2}")
	for name, tt := range map[string]struct {
		reason string
		files  fstest.MapFS
		path   string
		names  []string
		want   string // values
		refuse string
	}{
		"none":         {"the chart's own", inFolder, "charts/x", nil, "1 1 1 given", ""},
		"in order":     {"each over those before it", inFolder, "charts/x", []string{"env/first.yaml", "./env/second.yaml"}, "1 2 3 given", ""},
		"the other":    {"the order counts", inFolder, "charts/x", []string{"env/second.yaml", "env/first.yaml", "env/empty.yaml"}, "1 2 2 given", ""},
		"only folder":  {"paths are relative to the chart in the only folder", packaged, "", []string{"values-prod.yaml"}, "1 2 1 given", ""},
		"with a path":  {"paths are relative to the root", packaged, "x", []string{"x/values-prod.yaml"}, "1 2 1 given", ""},
		"missing":      {"the files that exist are named", inFolder, "charts/x", []string{"env/third.yaml"}, "", "env/third.yaml: the bundle has no such file; correct spec.helm.valuesFiles; the folder env has env/broken.yaml, env/empty.yaml, env/first.yaml, env/list.yaml, env/second.yaml ["},
		"other folder": {"those of the nearest folder are named", packaged, "", []string{"env/prod.yaml"}, "", "the root of the bundle has Chart.yaml, values-prod.yaml, values.yaml"},
		"both":         {"all problems are listed", inFolder, "charts/x", []string{"env/third.yaml", "env/list.yaml"}, "", "env/list.yaml: line 1: values are a mapping"},
		"broken":       {"the line is named, the content is not", inFolder, "charts/x", []string{"env/broken.yaml"}, "", "env/broken.yaml: line 2: this is not valid YAML"},
		"folder":       {"a folder is no file", inFolder, "charts/x", []string{"env"}, "", "env: this is no regular file"},
		"link":         {"links are not followed", inFolder, "charts/x", []string{"env/link.yaml"}, "", "leads through a symbolic link"},
		"outside":      {"nothing outside is read", inFolder, "charts/x", []string{"../values.yaml"}, "", "leaves the bundle"},
		"absolute":     {"nothing outside is read", inFolder, "charts/x", []string{"/etc/passwd"}, "", "leaves the bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := convert.Convert(tt.files, convert.Options{
				Path: tt.path, InstallNamespace: "ns", ValuesFiles: tt.names, Helm: helm.Options{Values: map[string]any{"d": "given"}},
			})
			if tt.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refuse) || strings.Contains(err.Error(), "CANARY") {
					t.Errorf("%s: %v", tt.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tt.reason, err)
			}
			data, _ := result.Objects[0].Object["data"].(map[string]any)
			if got := strings.TrimSpace(strings.Join([]string{text(data["a"]), text(data["b"]), text(data["c"]), text(data["d"])}, " ")); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
			}
		})
	}
}

func text(value any) string {
	s, _ := value.(string)
	return s
}
