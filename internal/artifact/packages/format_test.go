// SPDX-License-Identifier: Apache-2.0

package packages_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

func TestF56Packages(t *testing.T) {
	s, dir := serve(t), t.TempDir()
	if _, err := open(t, s, dir).Read(t.Context(), s.catalog("one"), "shop"); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v (%v)", files, err)
	}
	stored, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	formats.Golden(t, format.Package, append(stored, formats.Shape(catalog.Package{})...))

	// Of another version: it is asked for again.
	if err := os.WriteFile(files[0], []byte("satchel package 99\nwhatever\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := s.asked.Load()
	if found, err := open(t, s, dir).Read(t.Context(), s.catalog("one"), "shop"); err != nil || found.Package == nil || s.asked.Load() != asked+1 {
		t.Errorf("asked %d times more (%v)", s.asked.Load()-asked, err)
	}
}
