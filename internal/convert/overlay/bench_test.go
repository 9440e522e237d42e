// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/overlay"
)

// benched are overlays by themselves.
var benched = map[string]overlay.Options{
	"merge-one":  list(patches(overlay.Patch{Text: "spec: {replicas: 3}", Target: &overlay.Selector{Name: "web-7"}})...),
	"merge-all":  list(patches(overlay.Patch{Text: "spec: {replicas: 3}", Target: &overlay.Selector{Kind: "Deployment"}})...),
	"json-all":   list(patches(overlay.Patch{Text: "[{op: replace, path: /spec/replicas, value: 3}]", Target: &overlay.Selector{Kind: "Deployment"}})...),
	"prefix":     prefixed("p-"),
	"images":     list(overlay.Processor{Images: []overlay.Image{{Name: "quay.io/org/web", NewTag: "2"}}}),
	"variables":  list(overlay.Processor{Variables: &overlay.Variables{Given: map[string]string{"a": "c"}}}),
	"everything": list(everything...),
}

// everything is one processor of each kind.
var everything = []overlay.Processor{
	{Patch: &overlay.Patch{Text: "[{op: replace, path: /spec/replicas, value: 3}]", Target: &overlay.Selector{Kind: "Deployment"}}},
	{Names: &overlay.Names{Prefix: "p-"}},
	{Images: []overlay.Image{{Name: "quay.io/org/web", NewTag: "2"}}},
	{Variables: &overlay.Variables{Given: map[string]string{"a": "c"}}},
	{Metadata: &overlay.Metadata{Labels: map[string]string{"team": "a"}}},
	{ImageRewrites: []overlay.Rewrite{{From: "quay.io", To: "m"}}},
}

// BenchmarkOverlays of 1,000 and 10,000 Deployments.
func BenchmarkOverlays(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for name, o := range benched {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					manifests := many(n)
					runtime.GC()
					b.StartTimer()
					if _, problems := overlay.Apply(manifests, bundle(), o); len(problems) > 0 {
						b.Fatal(problems[0])
					}
				}
			})
		}
	}
}

// BenchmarkKustomize is the library, given the prefix and the patch.
func BenchmarkKustomize(b *testing.B) {
	var text bytes.Buffer
	for _, m := range many(1000) {
		data, err := yaml.Marshal(m.Object.Object)
		if err != nil {
			b.Fatal(err)
		}
		text.WriteString("---\n")
		text.Write(data)
	}
	for name, what := range map[string]string{
		"merge-one": "patches: [{target: {name: web-7}, patch: '{kind: Deployment, metadata: {name: x}, spec: {replicas: 3}}'}]", "merge-all": "patches: [{target: {kind: Deployment}, patch: '{kind: Deployment, metadata: {name: x}, spec: {replicas: 3}}'}]",
		"json-all": "patches: [{target: {kind: Deployment}, patch: '[{\"op\": \"replace\", \"path\": \"/spec/replicas\", \"value\": 3}]'}]",
		"prefix":   "namePrefix: p-", "images": "images: [{name: quay.io/org/web, newTag: '2'}]",
	} {
		memory := filesys.MakeFsInMemory()
		for file, content := range map[string][]byte{"/kustomization.yaml": []byte("resources: [all.yaml]\n" + what), "/all.yaml": text.Bytes()} {
			if err := memory.WriteFile(file, content); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(name+"/1000", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
