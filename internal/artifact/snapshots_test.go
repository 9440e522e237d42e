// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestSnapshots(t *testing.T) {
	dir := t.TempDir()
	open := func() *lastapplied.Snapshots {
		snapshots, err := lastapplied.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		return snapshots
	}
	const key = "5d3e9a1c-0a53-4f4e-8f34-0a6f8f0a2b7e"
	load := func(want string, exists bool) {
		t.Helper()
		data, ok, err := open().Load(key)
		if err != nil || ok != exists || string(data) != want {
			t.Errorf("loaded %.20q, %v, %v", data, ok, err)
		}
	}
	load("", false)
	for _, value := range []string{"first", "", string(noise(12, 100_000)["noise"].Data)} {
		if err := open().Save(key, []byte(value)); err != nil {
			t.Fatal(err)
		}
		load(value, true)
	}
	file := filepath.Join(dir, key+".snapshot")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 25, len(content) - 1} { // in the beginning, the checksum, the value
		content[at] ^= 1
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := open().Load(key)
		wantReason(t, err, fetch.InvalidContent)
		content[at] ^= 1
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode is %v: %v", info.Mode(), err)
	}
	if err := os.Truncate(file, 10); err != nil {
		t.Fatal(err)
	}
	_, _, err = open().Load(key)
	wantReason(t, err, fetch.InvalidContent)
	for range 2 {
		if err := open().Delete(key); err != nil {
			t.Fatal(err)
		}
	}
	load("", false)
}

// An addition is replaced without the value, and ends with it.
func TestSnapshotsHaveAdditions(t *testing.T) {
	dir := t.TempDir()
	snapshots, err := lastapplied.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := func(when, value, addition string) {
		t.Helper()
		got, ok, err := snapshots.Load("uid")
		added, additions, failed := snapshots.LoadAddition("uid")
		if err != nil || failed != nil || !ok || string(got) != value || string(added) != addition || !additions {
			t.Errorf("%s: %q (%v, %v) and %q (%v, %v)", when, got, ok, err, added, additions, failed)
		}
	}
	add := func(addition string) {
		t.Helper()
		if err := snapshots.SaveAddition("uid", []byte(addition)); err != nil {
			t.Fatal(err)
		}
	}
	save := func(value string) {
		t.Helper()
		if err := snapshots.Save("uid", []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	add("first")
	want("without a value", "", "first")
	save("one")
	want("saved", "one", "")
	add("second")
	add("third")
	want("added", "one", "third")
	save("one")
	want("saved again", "one", "")

	file := filepath.Join(dir, "uid.snapshot")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err = snapshots.LoadAddition("uid")
	wantReason(t, err, fetch.InvalidContent)
	add("fourth")
	want("added to a damaged one", "", "fourth")
}

func TestSnapshotsKeepThePreviousWhenSavingFails(t *testing.T) {
	dir := t.TempDir()
	steps, fail := 0, -1
	snapshots, err := lastapplied.Open(dir, hookFS{before: func(string) error {
		if steps++; steps-1 == fail {
			return fs.ErrInvalid
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshots.Save("uid", []byte("previous")); err != nil {
		t.Fatal(err)
	}
	for fail = range steps - 1 { // the last one syncs the folder, the new value is in place then
		steps = 0
		if err := snapshots.Save("uid", []byte("next")); err == nil {
			t.Errorf("step %d failed unnoticed", fail)
		}
		if data, ok, err := snapshots.Load("uid"); err != nil || !ok || string(data) != "previous" {
			t.Errorf("after step %d failed: %q, %v, %v", fail, data, ok, err)
		}
		if left := temporary(t, dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	for _, key := range []string{"", "../x", "a/b", ".", "A b"} {
		if err := snapshots.Save(key, nil); err == nil {
			t.Errorf("key %q was accepted", key)
		}
	}
}

func TestSnapshotsKeepOnly(t *testing.T) {
	dir := t.TempDir()
	snapshots, err := lastapplied.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b", "c"} {
		if err := snapshots.Save(key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(dir, "hash-key")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := snapshots.KeepOnly(map[string]bool{"b": true, "new": true}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"a": false, "b": true, "c": false} {
		if _, ok, err := snapshots.Load(key); err != nil || ok != want {
			t.Errorf("%s: %v, %v", key, ok, err)
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("what is no snapshot was removed: %v", err)
	}
}

// TestSmallSnapshotsAreCheap saves small snapshots of many deployments: each allocates a fraction of the tables of a compressor.
func TestSmallSnapshotsAreCheap(t *testing.T) {
	snapshots, err := lastapplied.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const count = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range count {
		if err := snapshots.Save(fmt.Sprint("uid-", i), []byte("the objects of a small deployment")); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / count
	t.Logf("each allocates %d KiB", each>>10)
	if each > 200<<10 {
		t.Error("that is not a fraction of 600 KiB")
	}
}
