// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
)

// configMaps are n objects with a value.
func configMaps(n int, value string) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, 0, n)
	for i := range n {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": value, "long": strings.Repeat("x", 200)},
		}}
		object.SetNamespace("shop")
		object.SetName(fmt.Sprintf("c%05d", i))
		objects = append(objects, object)
	}
	return objects
}

func configMap(i int) inventory.ID {
	return inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("c%05d", i)}
}

func save(t testing.TB, snapshots *lastapplied.Snapshots, uid, revision string, objects []*unstructured.Unstructured) {
	t.Helper()
	if err := snapshot.Save(snapshots, uid, snapshot.Snapshot{Revision: revision, Target: "cluster", Objects: objects}); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB) *lastapplied.Snapshots {
	t.Helper()
	snapshots, err := lastapplied.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return snapshots
}

// Objects are read as they were saved last, or not at all.
func TestRecentReadsWhatWasSaved(t *testing.T) {
	snapshots, recent := open(t), &snapshot.Recent{}
	read := func(revision string, ids ...inventory.ID) ([]*unstructured.Unstructured, bool) {
		t.Helper()
		objects, whole, err := recent.ReadSome(snapshots, "uid", revision, ids)
		if err != nil {
			t.Fatal(err)
		}
		return objects, whole
	}
	if _, whole := read("v1", configMap(0)); whole {
		t.Error("objects of a snapshot that does not exist")
	}
	for _, revision := range []string{"v1", "v2"} {
		save(t, snapshots, "uid", revision, configMaps(1000, revision))
		for range 2 {
			objects, whole := read(revision, configMap(3), configMap(999))
			if !whole || len(objects) != 2 {
				t.Fatalf("%s: %d objects, want 2", revision, len(objects))
			}
			value, _, _ := unstructured.NestedString(objects[1].Object, "data", "value")
			if objects[1].GetName() != "c00999" || value != revision {
				t.Errorf("%s: %s has the value %q", revision, objects[1].GetName(), value)
			}
		}
	}
	if _, whole := read("v1", configMap(3)); whole {
		t.Error("the snapshot is of another revision")
	}
	if _, whole := read("v2", configMap(3), configMap(1000)); whole {
		t.Error("one object is not in the snapshot")
	}
	if err := snapshots.Delete("uid"); err != nil {
		t.Fatal(err)
	}
	if _, whole := read("v2", configMap(3)); whole {
		t.Error("the snapshot was deleted")
	}
}

// The cost of reading one object does not depend on the number of objects.
func TestRecentCostsOneObject(t *testing.T) {
	snapshots, recent := open(t), &snapshot.Recent{}
	allocations := func(n int) float64 {
		uid := fmt.Sprint("uid-", n)
		save(t, snapshots, uid, "v1", configMaps(n, "v1"))
		return testing.AllocsPerRun(5, func() {
			if _, whole, err := recent.ReadSome(snapshots, uid, "v1", []inventory.ID{configMap(n / 2)}); err != nil || !whole {
				t.Fatal(whole, err)
			}
		})
	}
	small, large := allocations(100), allocations(5000)
	t.Logf("allocations to read one object: %.0f of 100, %.0f of 5,000", small, large)
	if large > 2*small {
		t.Errorf("reading one object of 5,000 costs %.0f allocations, and of 100 %.0f", large, small)
	}
}
