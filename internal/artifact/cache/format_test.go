// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/artifact/cache"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

func TestF56Pins(t *testing.T) {
	dir := t.TempDir()
	pinned, err := cache.Open(cache.Options{Dir: dir, Bytes: 1 << 20, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := pinned.Pin("uid", []string{cache.Key(ownerOf(1), digestOf(1)), cache.Key(ownerOf(2), digestOf(2))}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, ".pins", "uid")
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	formats.Golden(t, format.Pins, stored)

	// Of another version: the deployment stays known, and pins again.
	if err := os.WriteFile(file, []byte("satchel pins 99\nwhatever\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := cache.Open(cache.Options{Dir: dir, Bytes: 1 << 20, Now: time.Now})
	if err != nil || len(again.Pinning()) != 1 {
		t.Fatalf("pinning %v (%v)", again.Pinning(), err)
	}
	if err := again.Pin("uid", []string{cache.Key(ownerOf(1), digestOf(1)), cache.Key(ownerOf(2), digestOf(2))}); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(stored) {
		t.Errorf("pinned again: %q (%v)", now, err)
	}
}
