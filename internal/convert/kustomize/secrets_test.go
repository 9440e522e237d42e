// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/satchel-dev/satchel/internal/convert/kustomize"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/tests/measure"
)

// manyMaps is a kustomization of so many ConfigMaps with a prefix.
func manyMaps(n int) fstest.MapFS {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%05d}\ndata: {a: %q, b: hello}\n", i, strings.Repeat("x", 100))
	}
	return fstest.MapFS{
		"kustomization.yaml": {Data: []byte("namePrefix: my-\nlabels: [{pairs: {app: many}}]\nresources: [many.yaml]\n")},
		"many.yaml":          {Data: []byte(text.String())},
	}
}

// The values of Secrets stand in no message, whatever fails.
func TestSecretsAreNotQuoted(t *testing.T) {
	const canary = "canary-hunter22"
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: " + canary + "}\n"
	for name, files := range map[string]fstest.MapFS{
		"path that does not exist": {
			"kustomization.yaml": {Data: []byte("resources: [s.yaml]\nreplacements:\n- source: {kind: Secret, name: s, fieldPath: stringData.password}\n  targets: [{select: {kind: Secret}, fieldPaths: [spec.list.0.x]}]\n")},
			"s.yaml":             {Data: []byte(secret)},
		},
		"patch of nothing": {
			"kustomization.yaml": {Data: []byte("resources: [s.yaml]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: Secret\n    metadata: {name: other}\n    stringData: {password: " + canary + "}\n")},
			"s.yaml":             {Data: []byte(secret)},
		},
		"test that fails": {
			"kustomization.yaml": {Data: []byte("resources: [s.yaml]\npatches:\n- target: {kind: Secret}\n  patch: '[{op: test, path: /stringData/password, value: another}]'\n")},
			"s.yaml":             {Data: []byte(secret)},
		},
		"two of a name": {
			"kustomization.yaml": {Data: []byte("resources: [s.yaml, t.yaml]\n")},
			"s.yaml":             {Data: []byte(secret)}, "t.yaml": {Data: []byte(secret)},
		},
		"file that is no environment": {
			"kustomization.yaml": {Data: []byte("secretGenerator: [{name: s, envs: [e.env]}]\n")},
			"e.env":              {Data: []byte("password=" + canary + "\xff\n")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			said := problemsOf(t, files, ".")
			if said == "" || strings.Contains(said, canary) || strings.Contains(said, "satchel-bundle") {
				t.Errorf("said %q", said)
			}
			t.Log(said)
		})
	}
}

// BenchmarkBuild is a kustomization of 500 objects, and of 2,000, beside the library alone.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{500, 2000} {
		files := manyMaps(n)
		dir := b.TempDir()
		if err := os.CopyFS(dir, files); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%d/satchel", n), func(b *testing.B) {
			b.ReportAllocs()
			peak := watchHeap(b)
			measure.CPU(b)
			for b.Loop() {
				if _, problems := kustomize.Convert(files, ".", manifest.Limits{}); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
			b.ReportMetric(peak(), "MiB-heap")
		})
		b.Run(fmt.Sprintf("%d/library", n), func(b *testing.B) {
			b.ReportAllocs()
			peak := watchHeap(b)
			options := krusty.MakeDefaultOptions()
			options.LoadRestrictions = types.LoadRestrictionsNone
			for b.Loop() {
				made, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Clean(dir))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := made.AsYaml(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(peak(), "MiB-heap")
		})
	}
}

// watchHeap returns a function that tells the largest heap since, in MiB.
func watchHeap(b *testing.B) func() float64 {
	b.Helper()
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		largest := uint64(0)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			largest = max(largest, stats.HeapAlloc)
			select {
			case <-stop:
				most <- largest
				return
			case <-ticker.C:
			}
		}
	}()
	return func() float64 { close(stop); return float64(<-most) / (1 << 20) }
}
