// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"
)

// largeIndex has 20,000 versions in 100 charts, and about 20 MB.
func largeIndex() string {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nentries:\n")
	for chart := range 100 {
		fmt.Fprintf(&text, "  chart-%d:\n", chart)
		for version := range 200 {
			fmt.Fprintf(&text, "  - annotations:\n      category: Database\n      images: |\n        - name: app\n          image: registry.example.org/app:%d\n"+
				"    apiVersion: v2\n    appVersion: %d.0.0\n    created: \"2026-01-01T00:00:00Z\"\n    dependencies:\n    - name: common\n      repository: https://charts.example.org/stable\n"+
				"      tags:\n      - common\n      version: 2.x.x\n    description: %s\n    digest: %064x\n    home: https://example.org\n    icon: https://example.org/icon.svg\n"+
				"    keywords:\n    - database\n    - sql\n    - replication\n    maintainers:\n    - name: Example\n      url: https://github.com/example/charts\n    name: chart-%d\n"+
				"    sources:\n    - https://github.com/example/charts/tree/main/app\n    urls:\n    - https://charts.example.org/stable/chart-%d-1.%d.0.tgz\n    version: 1.%d.0\n",
				version, version, strings.Repeat("A chart of several words. ", 9), version, chart, chart, version, version)
		}
	}
	return text.String()
}

// hostileIndex has as many entries of one chart as are read, each with as much YAML of the costly kind as is taken.
func hostileIndex() string {
	var text strings.Builder
	text.WriteString("entries:\n  chart-99:\n")
	costly := strings.Repeat("[", 4000)
	for text.Len() < 60<<20 {
		fmt.Fprintf(&text, "  - version: %s\n", costly)
	}
	return text.String()
}

// hostileURLs is a valid one of the largest kind.
func hostileURLs() string {
	var text strings.Builder
	text.WriteString("entries:\n  chart-99:\n")
	urls := strings.TrimSuffix(strings.Repeat("a, ", maxURLs), ", ")
	for i := 0; text.Len() < 60<<20 && i < maxVersions; i++ {
		fmt.Fprintf(&text, "  - urls: [%s, \"%s\"]\n    version: 1.%d.0\n", urls[3:], strings.Repeat("\\u0041", 500), i)
	}
	return text.String()
}

func BenchmarkIndex(b *testing.B) {
	for name, text := range map[string]string{"large": largeIndex(), "hostile": hostileIndex(), "urls": hostileURLs()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				_, _, err := chosen(b, text, "chart-99")
				if name != "hostile" && err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLibrary is the same by package yaml, and by the package that Helm uses, for comparison (ADR 32).
func BenchmarkLibrary(b *testing.B) {
	text := []byte(largeIndex())
	for name, unmarshal := range map[string]func([]byte, any) error{
		"yaml": yaml.Unmarshal,
		"sigs": func(data []byte, into any) error { return kyaml.Unmarshal(data, into) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				var index struct {
					Entries map[string][]struct {
						Version string   `json:"version"`
						Digest  string   `json:"digest"`
						URLs    []string `json:"urls"`
					} `json:"entries"`
				}
				if err := unmarshal(text, &index); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
