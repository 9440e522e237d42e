// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// FuzzConvert renders charts of hostile files twice: nothing panics, both renders are the same, objects say what they are, and
// what is refused is refused with a reason that names no counter of ours.
func FuzzConvert(f *testing.F) {
	for _, name := range []string{"shop", "hooks"} {
		files := chartOf(f, name)
		for file, content := range files {
			if strings.HasPrefix(file, "templates/") {
				f.Add(files["Chart.yaml"].Data, files["values.yaml"].Data, content.Data, []byte("{}"), []byte(`{{ define "x" }}{{ end }}`))
			}
		}
	}
	for _, name := range []string{"value within itself", "doubling maps", "include that calls itself", "values within themselves"} {
		f.Add([]byte(aChart), []byte("a: {b: 1}"), []byte(bombs[name].template), []byte(portSchema), []byte(""))
	}
	f.Fuzz(func(t *testing.T, chart, values, template, schema, other []byte) {
		files := fstest.MapFS{
			"Chart.yaml": {Data: chart}, "values.yaml": {Data: values}, "values.schema.json": {Data: schema},
			"templates/a.yaml": {Data: template}, "templates/_b.tpl": {Data: other}, "charts/sub/Chart.yaml": {Data: []byte("apiVersion: v2\nname: sub\nversion: 1.0.0\n")},
			"charts/sub/templates/c.yaml": {Data: template},
		}
		limits := manifest.Limits{TotalBytes: 1 << 18}
		first, problems := helm.Convert(files, "", "ns", helm.Options{ReleaseName: "demo"}, limits)
		second, again := helm.Convert(files, "", "ns", helm.Options{ReleaseName: "demo"}, limits)
		if diff := cmp.Diff(problems, again); diff != "" {
			t.Fatalf("refused otherwise the second time:\n%s", diff)
		}
		for _, p := range problems {
			if p.Message == "" || strings.ContainsAny(p.Message, "\n\x00") || strings.Contains(p.Message, "_tick") {
				t.Fatalf("problem %+v", p)
			}
		}
		if len(problems) > 0 {
			return
		}
		if diff := cmp.Diff(ours(t, first), ours(t, second)); diff != "" || !slices.Equal(first.Warnings, second.Warnings) {
			t.Fatalf("two renders differ:\n%s", diff)
		}
		for _, m := range first.Manifests {
			if m.Object.GetKind() == "" || m.Object.GetName() == "" {
				t.Fatalf("an object without identity: %v", m.Object)
			}
		}
	})
}
