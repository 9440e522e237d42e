// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/tests/measure"
)

// loadCorpus holds the real bundles in memory, so that the disk is not measured.
func loadCorpus(b *testing.B) (bundles map[string]fstest.MapFS, manifestBytes int64) {
	b.Helper()
	root := filepath.Join(corpus(b), "bundles")
	bundles = map[string]fstest.MapFS{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, _ := filepath.Rel(root, path)
		parts := strings.SplitN(filepath.ToSlash(relative), "/", 3)
		if bundles[parts[0]] == nil {
			bundles[parts[0]] = fstest.MapFS{}
		}
		bundles[parts[0]][parts[2]] = &fstest.MapFile{Data: data, Mode: 0o644}
		if strings.HasPrefix(parts[2], "manifests/") {
			manifestBytes += int64(len(data))
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return bundles, manifestBytes
}

// BenchmarkConvertCorpus renders the real bundles; plain parsing of the same manifests stands beside it.
func BenchmarkConvertCorpus(b *testing.B) {
	bundles, size := loadCorpus(b)
	modes := readModes(b)
	b.Run("convert", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		measure.CPU(b)
		for b.Loop() {
			for name, bundle := range bundles {
				if _, err := convert.Convert(bundle, bundleOptions(modes[name])); err != nil {
					b.Fatal(name, err)
				}
			}
		}
	})
	b.Run("yaml", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			for _, bundle := range bundles {
				parseAll(bundle)
			}
		}
	})
}

// BenchmarkConvertBesideParsing renders and plainly parses the real bundles in turns, so that both meet the same machine,
// and reports the rates of both and which share of rendering is our own reading of the files. Run it with -cpu 1.
func BenchmarkConvertBesideParsing(b *testing.B) {
	bundles, size := loadCorpus(b)
	modes := readModes(b)
	var convertTime, readTime, yamlTime time.Duration
	rounds := 0
	for b.Loop() {
		rounds++
		for name, bundle := range bundles {
			convertTime += timed(func() {
				if _, err := convert.Convert(bundle, bundleOptions(modes[name])); err != nil {
					b.Fatal(name, err)
				}
			})
			readTime += timed(func() { readAll(b, bundle) })
			yamlTime += timed(func() { parseAll(bundle) })
		}
	}
	rate := func(took time.Duration) float64 { return float64(size) * float64(rounds) / 1e6 / took.Seconds() }
	b.ReportMetric(rate(convertTime), "MB/s-rendered")
	b.ReportMetric(rate(yamlTime), "MB/s-parsed")
	b.ReportMetric(convertTime.Seconds()/yamlTime.Seconds(), "rendering/parsing")
	b.ReportMetric(100*readTime.Seconds()/convertTime.Seconds(), "%-reading")
}

func timed(work func()) time.Duration {
	start := time.Now()
	work()
	return time.Since(start)
}

// readAll reads every manifest as rendering does, and does nothing with it.
func readAll(b *testing.B, bundle fstest.MapFS) {
	b.Helper()
	reader := manifest.NewReader(bundle, manifest.Limits{})
	for _, name := range slices.Sorted(maps.Keys(bundle)) {
		if strings.HasPrefix(name, "manifests/") {
			reader.Read(name)
		}
	}
	if problems := reader.Problems(); len(problems) > 0 {
		b.Fatal(problems)
	}
}

// parseAll decodes every document to plain values and forgets them.
func parseAll(bundle fstest.MapFS) {
	for name, file := range bundle {
		if !strings.HasPrefix(name, "manifests/") {
			continue
		}
		decoder := yaml.NewDecoder(bytes.NewReader(file.Data))
		for {
			var value any
			if decoder.Decode(&value) != nil {
				break
			}
		}
	}
}
