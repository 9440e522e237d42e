// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// TestM8ManyValues: eight files of 2 MiB that gzip to a few KB and hold four million small mappings end at the budget of
// values, named by file and line, before they fill the memory; nothing behind is read.
func TestM8ManyValues(t *testing.T) {
	for name, c := range map[string]struct{ reason, extension, open, item, file string }{
		"YAML list":    {"a document that is no object has its price too", "yaml", "[", "{\"a\":{}},\n", "2.yaml"},
		"YAML mapping": {"as part of an object", "yaml", "kind: X\na: [", "{a: {}},\n", "2.yaml"},
		"JSON":         {"JSON has its own builder", "json", `{"kind": "X", "a": [`, "{\"a\":{}},\n", "2.json"},
		"tiny scalars": {"boxes of one digit", "yaml", "kind: X\na: [", "1,\n", "1.yaml"},
		"large text":   {"the parser makes nodes of all of it before one is counted", "yml", "kind: X\na: [", "{a: {}},\n", "0.yml"},
		"large flow":   {"without a line break", "yml", "kind: X\na: [", "1,", "0.yml"},
		"large block":  {"lists in lists", "yml", "kind: X\na:\n", "- - - 1\n", "0.yml"},
		"large JSON":   {"its values are counted as they are read", "json5.json", `{"kind": "X", "a": [`, "{\"a\":{}},\n", "0.json5.json"},
	} {
		t.Run(name, func(t *testing.T) {
			limits := manifest.DefaultLimits()
			if !strings.HasPrefix(name, "large") {
				limits.FileBytes = 2 << 20
			}
			files := fstest.MapFS{}
			for i := range 8 {
				files[fmt.Sprintf("%d.%s", i, c.extension)] = &fstest.MapFile{Data: []byte(filled(c.open, c.item, int(limits.FileBytes)))}
			}
			reader := manifest.NewReader(files, limits)
			var kept []manifest.Manifest
			peak := peakOf(func() {
				for i := range 8 {
					kept = append(kept, reader.Read(fmt.Sprintf("%d.%s", i, c.extension))...)
				}
			})
			problems := reader.Problems()
			last := problems[len(problems)-1]
			t.Logf("%s: at most %d MiB beyond the files, refused with: %s", name, peak>>20, last)
			if last.Rule != manifest.RuleLimit || last.File != c.file || !strings.Contains(last.Message, "1000000 values") {
				t.Errorf("%s: got %v", c.reason, last)
			}
			if most := int64(512 << 20); peak > most {
				t.Errorf("%s: %d MiB are more than %d", c.reason, peak>>20, most>>20)
			}
			runtime.KeepAlive(kept)
		})
	}
}

// filled repeats an item, up to the size of a file; it ends as valid YAML and JSON.
func filled(open, item string, size int) string {
	end := strings.TrimRight(item, ",\n") + "]"
	if strings.HasPrefix(open, "{") {
		end += "}"
	}
	return open + strings.Repeat(item, (size-len(open)-len(end))/len(item)) + end
}

// peakOf measures by how much the heap grows while work runs, garbage included.
func peakOf(work func()) int64 {
	inUse := func() int64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc) //nolint:gosec // G115: a heap is smaller than an int64
	}
	runtime.GC()
	before, peak := inUse(), int64(0)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
				peak = max(peak, inUse()-before)
			}
		}
	}()
	work()
	close(done)
	<-stopped
	return max(peak, inUse()-before)
}

// TestM8BesideManifests: files that are read without a budget of values are small.
func TestM8BesideManifests(t *testing.T) {
	for size, good := range map[int]bool{256 << 10: true, 256<<10 + 1: false} {
		files := fstest.MapFS{"metadata/annotations.yaml": {Data: []byte(strings.Repeat("#", size))}}
		data, problem := manifest.NewReader(files, manifest.Limits{}).ReadFile("metadata/annotations.yaml", "P2")
		if good != (problem == nil) || good && len(data) != size {
			t.Errorf("%d bytes: %d read, %v", size, len(data), problem)
		}
	}
}
