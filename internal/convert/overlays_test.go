// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pmezard/go-difflib/difflib"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// adapted are bundles of each format, for overlays to be put over.
var adapted = map[string]convert.Options{
	"shop":   {InstallNamespace: "shop"},
	"kiosk":  {InstallNamespace: "kiosk"},
	"press":  {InstallNamespace: "press", Helm: helm.Options{ReleaseName: "press"}},
	"gadget": withV1(registryv1.Options{CertificateProvider: registryv1.SelfSigned}),
}

// overlays are processors of each kind by itself.
var overlays = map[string][]overlay.Processor{
	"patches": {
		{Patch: &overlay.Patch{Text: "metadata: {annotations: {patched: merge}}\nspec: {template: {spec: {nodeSelector: {pool: infra}}}}", Target: &overlay.Selector{Kind: "Deployment|StatefulSet"}}},
		{Patch: &overlay.Patch{Text: "[{op: add, path: /metadata/labels, value: {patched: operation}}]", Target: &overlay.Selector{Kind: "CronJob|Job|Service|ConfigMap|Secret"}}},
		{Patch: &overlay.Patch{Text: "$patch: delete", Target: &overlay.Selector{Kind: "Theme"}}},
	},
	"names":    {{Names: &overlay.Names{Prefix: "test-", Suffix: "-2"}}},
	"images":   {{Images: []overlay.Image{{Name: "registry.example.org/db", NewTag: "2"}, {Name: "quay.io/example/kiosk", NewName: "kiosk"}, {Name: "quay.io/example/press", NewTag: "2"}, {Name: "registry.example.org/gadget/manager", Digest: "sha256:aa"}}}},
	"metadata": {{Metadata: &overlay.Metadata{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b"}}}},
	"variables": {
		{Patch: &overlay.Patch{Text: "metadata: {annotations: {region: '${region}', size: '${size:=small}', not: '$${region}'}}", Target: &overlay.Selector{Kind: "Deployment|StatefulSet|ServiceAccount"}}},
		{Variables: &overlay.Variables{Given: map[string]string{"region": "us"}, Read: map[string]string{"region": "read", "schedule": "1 2 * * *"}}},
	},
	"rewrites": {{ImageRewrites: []overlay.Rewrite{{From: "registry.example.org", To: "mirror.example.org/r"}, {From: "quay.io/example", To: "mirror.example.org/q"}}}},
}

// TestOverlays pins what each overlay changes in a bundle of each format.
func TestOverlays(t *testing.T) {
	for bundle, o := range adapted {
		files := os.DirFS(filepath.Join("testdata", "bundles", bundle))
		plain, err := convert.Convert(files, o)
		if err != nil {
			t.Fatal(err)
		}
		before := string(serialize(t, plain))
		for name, processors := range overlays {
			t.Run(bundle+"-"+name, func(t *testing.T) {
				o := o
				o.Overlay = overlay.Options{Processors: processors}
				result, err := convert.Convert(files, o)
				if err != nil {
					t.Fatal(err)
				}
				diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: difflib.SplitLines(before), B: difflib.SplitLines(string(serialize(t, result))), Context: 2})
				if err != nil {
					t.Fatal(err)
				}
				checkGolden(t, filepath.Join("testdata", "overlays", bundle+"-"+name+".diff"), diff)
			})
		}
	}
}

// TestOverlaysAreDeterministic: without overlays a bundle becomes the same, byte for byte, and so it does each time.
func TestOverlaysAreDeterministic(t *testing.T) {
	for bundle, o := range adapted {
		files := os.DirFS(filepath.Join("testdata", "bundles", bundle))
		for name, with := range overlays {
			o.Overlay = overlay.Options{Processors: with}
			times := 1000 / len(overlays) / len(adapted)
			want := ""
			for range times {
				result, err := convert.Convert(files, o)
				if err != nil {
					t.Fatal(err)
				}
				got := string(serialize(t, result))
				if want == "" {
					want = got
				}
				if got != want {
					t.Fatalf("%s with %s differs from one time to the next: %s", bundle, name, cmp.Diff(want, got))
				}
			}
		}
		o.Overlay = overlay.Options{Processors: []overlay.Processor{}}
		empty, err := convert.Convert(files, o)
		if err != nil {
			t.Fatal(err)
		}
		o.Overlay = overlay.Options{}
		plain, err := convert.Convert(files, o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(serialize(t, plain)), string(serialize(t, empty))); diff != "" {
			t.Errorf("%s: overlays that say nothing change something: %s", bundle, diff)
		}
	}
}

func checkGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-golden +got):\n%s", diff)
	}
}
