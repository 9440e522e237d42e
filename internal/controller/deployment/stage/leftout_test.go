// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec/leftout"
)

// TestF54HoldIsBounded: as many objects as a bundle may have, and as many links with names as long as they may be, cost about as much
// as the objects and the links, not their product: to find what is held, to say it, to encode it, and to find it again.
func TestF54HoldIsBounded(t *testing.T) {
	const objects, most = 25_000, 1_000
	// named are so many files with paths of 1,024 bytes.
	named := func(folder string, number int) []string {
		names := make([]string, number)
		for i := range names {
			end := fmt.Sprintf("%04d.yaml", i)
			part := strings.Repeat("d", 240) + "/"
			names[i] = folder + "/" + strings.Repeat(part, 5)[:1024-len(folder)-1-len(end)-1] + "x" + end
		}
		return names
	}
	of := func(file func(int) string) map[inventory.ID]string {
		origins := map[inventory.ID]string{}
		for i := range objects {
			origins[object(i)] = file(i)
		}
		return origins
	}
	everything := of(func(int) string { return "chart/templates/a.yaml" })
	former := named("chart/former", most)
	values := named("chart/files", most)
	templates := named("chart/templates", most/2)
	plain := named("chart", most)
	held := map[inventory.ID][]string{}
	for id := range everything {
		held[id] = values
	}
	for name, tc := range map[string]struct {
		format convert.Format
		links  []string
		was    leftout.Applied
		held   int
	}{
		"files of a chart":       {convert.Helm, values, leftout.Applied{Known: true, LeftOut: former, Origins: everything}, objects},
		"files and templates":    {convert.Helm, slices.Concat(values[:most/2], templates), leftout.Applied{Known: true, LeftOut: former, Origins: of(func(i int) string { return templates[i%len(templates)] })}, objects},
		"plain files":            {convert.PlainV0, plain, leftout.Applied{Known: true, LeftOut: former, Origins: of(func(i int) string { return plain[0] + fmt.Sprint(i) })}, 0},
		"nothing is known":       {convert.PlainV0, values, leftout.Applied{}, objects},
		"no single file":         {convert.PlainV0, values, leftout.Applied{Known: true, LeftOut: former, Origins: of(func(int) string { return "" })}, objects},
		"held before":            {convert.PlainV0, values, leftout.Applied{Known: true, LeftOut: values, Held: held}, objects},
		"all were links before":  {convert.Helm, values, leftout.Applied{Known: true, LeftOut: values, Origins: everything}, 0},
		"a folder of the values": {convert.Helm, []string{"chart/files"}, leftout.Applied{Known: true, LeftOut: former, Origins: everything}, objects},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Rendered{Bundle: leftout.Bundle{Format: tc.format, Root: "chart", LeftOut: tc.links}}
			entries := make([]inventory.Entry, objects)
			for i := range entries {
				entries[i] = inventory.Entry{ID: object(i), Version: "v1"}
			}
			listed := inventory.New("cluster", entries...)
			snapshots, err := lastapplied.Open(t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			last := snapshot.Snapshot{Revision: "v2", Objects: []*unstructured.Unstructured{}}
			var first, again map[inventory.ID][]string
			allocated, took := cost(func() {
				first = leftout.Hold(r.Bundle, tc.was, listed)
				kept := keep(first)
				if text := kept.String(); len(text) > 10_000 {
					t.Errorf("the message has %d bytes", len(text))
				}
				last.Files = r.Files(nil, kept)
				if _, err := json.Marshal(last); err != nil {
					t.Fatal(err)
				}
			})
			t.Logf("%d MiB and %s to hold, to say and to encode", allocated>>20, took.Round(time.Millisecond))
			if len(first) != tc.held || allocated > 64<<20 || took > 5*time.Second {
				t.Errorf("%d are held, want %d, with %d MiB and in %s", len(first), tc.held, allocated>>20, took)
			}
			if err := snapshot.Save(snapshots, "uid", last); err != nil {
				t.Fatal(err)
			}
			allocated, took = cost(func() { again = leftout.Hold(r.Bundle, snapshot.NewReader(snapshots, "uid").Files(), listed) })
			t.Logf("%d MiB and %s in the next reconcile", allocated>>20, took.Round(time.Millisecond))
			if len(again) != tc.held || allocated > 64<<20 || took > 5*time.Second {
				t.Errorf("then %d are held, want %d, with %d MiB and in %s", len(again), tc.held, allocated>>20, took)
			}
			for i := 0; i < objects; i += objects / 100 {
				if id := object(i); !slices.Equal(first[id], again[id]) {
					t.Fatalf("%s is held by %d links, and by %d then", id, len(first[id]), len(again[id]))
				}
			}
		})
	}
}

func object(number int) inventory.ID {
	return inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("o%05d", number)}
}

// keep is what a plan says about objects that left the bundle.
func keep(files map[inventory.ID][]string) *pruning.Held {
	held := &pruning.Held{}
	for id := range files {
		held.Objects = append(held.Objects, id)
	}
	slices.SortFunc(held.Objects, inventory.ID.Compare)
	held.Keep(files)
	return held
}

// cost is what is allocated meanwhile, and how long it takes.
func cost(work func()) (allocated uint64, took time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	work()
	took = time.Since(began)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, took
}
