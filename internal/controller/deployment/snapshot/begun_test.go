// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
)

// Contents that were begun are known until a revision is applied completely, also after others
// replaced their hashes in the inventory. What the inventory never referred to does not count.
func TestF34ContentsBegunEarlier(t *testing.T) {
	const correction = 0 // the applied content is written again
	tests := map[string]struct {
		reason string
		// begun are the contents of one object in turn. listed is, for each of them, the content in the inventory before.
		begun, listed []byte
		want          []byte
	}{
		"begun once":          {"the inventory refers to it", []byte{1}, []byte{0}, []byte{1}},
		"begun again":         {"it is kept once", []byte{1, 1}, []byte{0, 1}, []byte{1}},
		"corrected meanwhile": {"the first one may have been written", []byte{1, correction}, []byte{0, 1}, []byte{1}},
		"corrected twice":     {"the inventory does not refer to it any more", []byte{1, correction, correction}, []byte{0, 1, correction}, []byte{1}},
		"continued after":     {"the next attempt begins the same content", []byte{1, correction, 1}, []byte{0, 1, correction}, []byte{1}},
		"two revisions":       {"both may have been written", []byte{1, 2}, []byte{0, 1}, []byte{1, 2}},
		"three revisions":     {"all may have been written", []byte{1, 2, 3}, []byte{0, 1, 2}, []byte{1, 2, 3}},
		"never recorded":      {"the status could not be written", []byte{1, 2}, []byte{0, 0}, []byte{2}},
		"too many":            {"the oldest one is dropped", []byte{1, 2, 3, 4, 5}, []byte{0, 1, 2, 3, 4}, []byte{2, 3, 4, 5}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			snapshots, err := lastapplied.Open(t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, content := range tc.begun {
				listed := inventory.New("cluster", entry(tc.listed[i]))
				if content == correction {
					err = snapshot.RecordBegun(snapshots, "uid", map[inventory.ID]string{entry(0).ID: entry(correction).Rendered.String()}, listed, snapshot.NewReader(snapshots, "uid"))
				} else {
					err = snapshot.KeepBegun(snapshots, "uid", []snapshot.Begun{begun(content)}, listed, snapshot.NewReader(snapshots, "uid"))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			reader := snapshot.NewReader(snapshots, "uid")
			reader.Object(entry(0).ID)
			var got []byte
			for _, object := range reader.BegunAs(entry(tc.begun[len(tc.begun)-1])) {
				var content byte
				if _, err := fmt.Sscan(object.GetLabels()["content"], &content); err != nil {
					t.Fatal(err)
				}
				got = append(got, content)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// What was begun still counts when the inventory had no room for its hash, and stays known while another content is begun. An
// object that was never written or begun has none.
func TestF34ContentsThatAreNotRecorded(t *testing.T) {
	snapshots, err := lastapplied.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	planned := inventory.Entry{ID: entry(1).ID}
	written, started := planned, planned
	written.Fields, started.Begun = inventory.Unrecorded, true
	for _, content := range []byte{1, 2} {
		err := snapshot.KeepBegun(snapshots, "uid", []snapshot.Begun{begun(content)}, inventory.New("cluster", written), snapshot.NewReader(snapshots, "uid"))
		if err != nil {
			t.Fatal(err)
		}
	}
	reader := snapshot.NewReader(snapshots, "uid")
	reader.Object(planned.ID)
	for name, tc := range map[string]struct {
		entry inventory.Entry
		want  int
	}{
		"written": {written, 2},
		"begun":   {started, 2},
		"planned": {planned, 1}, // the first content was written: it was recorded when the second one was begun
	} {
		if got := len(reader.BegunAs(tc.entry)); got != tc.want {
			t.Errorf("%s: %d contents, want %d", name, got, tc.want)
		}
	}
}

// What was begun adds up beside the applied objects, until a revision was applied completely.
func TestF34BegunUntilARevisionIsApplied(t *testing.T) {
	snapshots := open(t)
	save(t, snapshots, "uid", "v1", configMaps(1, "v1"))
	for i := range 2 {
		want := i + 1
		err := snapshot.KeepBegun(snapshots, "uid", []snapshot.Begun{begun(byte(want))}, inventory.New("cluster", entry(1)), snapshot.NewReader(snapshots, "uid"))
		if err != nil {
			t.Fatal(err)
		}
		last, applied, err := snapshot.Read(snapshots, "uid")
		if err != nil || !applied || last.Target != "cluster" || len(last.Objects) != 1 || len(last.Begun) != want {
			t.Fatalf("read %+v, applied %v (%v), want %d begun", last, applied, err, want)
		}
	}
	save(t, snapshots, "uid", "v2", configMaps(1, "v2"))
	if last, _, err := snapshot.Read(snapshots, "uid"); err != nil || len(last.Begun) != 0 {
		t.Errorf("%d contents are begun after the revision was applied (%v)", len(last.Begun), err)
	}
}

// To begin one object costs the same beside few and many applied ones.
func TestKeepBegunCostsWhatIsBegun(t *testing.T) {
	snapshots := open(t)
	save(t, snapshots, "uid", "v1", configMaps(5000, "v1"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := snapshot.KeepBegun(snapshots, "uid", []snapshot.Begun{begun(1)}, inventory.New("cluster", entry(0)), snapshot.NewReader(snapshots, "uid"))
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	last, applied, err := snapshot.Read(snapshots, "uid")
	if err != nil || !applied || len(last.Objects) != 5000 || len(last.Begun) != 1 {
		t.Errorf("%d objects and %d begun, applied %v (%v)", len(last.Objects), len(last.Begun), applied, err)
	}
	const most = 1536 << 10 // the applied objects alone have more
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("%d KiB were allocated to begin one object beside 5,000", used>>10)
	}
}

// Before a revision is applied completely, nothing is read for a repair, and that is no error.
func TestRecentBeforeTheFirstRevision(t *testing.T) {
	snapshots, recent := open(t), &snapshot.Recent{}
	err := snapshot.KeepBegun(snapshots, "uid", []snapshot.Begun{begun(1)}, inventory.New("cluster", entry(0)), snapshot.NewReader(snapshots, "uid"))
	if err != nil {
		t.Fatal(err)
	}
	if _, whole, err := recent.ReadSome(snapshots, "uid", "v1", []inventory.ID{configMap(0)}); whole || err != nil {
		t.Errorf("whole %v (%v)", whole, err)
	}
	if last, applied, err := snapshot.Read(snapshots, "uid"); err != nil || applied || last.Target != "cluster" || len(last.Begun) != 1 {
		t.Errorf("read %+v, applied %v (%v)", last, applied, err)
	}
}

func entry(content byte) inventory.Entry {
	return inventory.Entry{
		ID: inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: "x"}, Version: "v1",
		Rendered: inventory.Hash{1, content}, Begun: content != 0,
	}
}

func begun(content byte) snapshot.Begun {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetNamespace("shop")
	object.SetName("x")
	object.SetLabels(map[string]string{"content": fmt.Sprint(content)})
	return snapshot.Begun{Rendered: entry(content).Rendered.String(), Object: object}
}
