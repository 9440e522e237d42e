// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// FuzzConvert renders charts of hostile files twice: nothing panics, both renders are the same, objects say what they are, and
// what is refused is refused with a reason of one line.
//
// It renders in the fuzzer's own process: the fuzzer finds new inputs by the code that they reach, and sees none of a worker
// process. Bombs are no findings here, as TestM8BombsEndInWorkers has them, so that large numbers are skipped.
func FuzzConvert(f *testing.F) {
	for _, name := range []string{"shop", "hooks"} {
		files := chartOf(f, name)
		for file, content := range files {
			if strings.HasPrefix(file, "templates/") {
				f.Add(files["Chart.yaml"].Data, files["values.yaml"].Data, content.Data, []byte("{}"), []byte(`{{ define "x" }}{{ end }}`))
			}
		}
	}
	large := regexp.MustCompile(`[0-9]{4}|0[xXbBoO]|[eEpP][+]?[0-9]`)
	f.Fuzz(func(t *testing.T, chart, values, template, schema, other []byte) {
		if large.Match(template) || large.Match(other) || large.Match(values) {
			t.Skip("a large number can keep the engine busy")
		}
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
			if p.Message == "" || strings.ContainsAny(p.Message, "\n\x00") {
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
