// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/artifact/catalogs"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

func TestF56Records(t *testing.T) {
	dir := t.TempDir()
	shop := types.NamespacedName{Namespace: "team", Name: "shop"}
	record := mustPublish(t, open(t, dir, 0), shop, "web")
	file := filepath.Join(dir, "catalogs", "records", "team", "shop")
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile(`"storedTime":"[^"]*"`).ReplaceAll(stored, []byte(`"storedTime":"2026-01-01T00:00:00Z"`))
	formats.Golden(t, format.Catalog, append(append(example, '\n'), formats.Shape(catalogs.Record{})...))

	// Of another version: the record is as if it was not there, and contents are not served.
	for name, c := range map[string]struct{ file, was, is string }{
		"record": {file, format.Catalog.Line(), "satchel catalog 99\n"},
		"index":  {filepath.Join(dir, "catalogs", "contents", record.Contents, "index"), format.Index.Line(), "satchel index 99\n"},
	} {
		content, err := os.ReadFile(c.file)
		if err != nil || !strings.HasPrefix(string(content), c.was) {
			t.Fatalf("%s begins with %.30q (%v)", name, content, err)
		}
		if err := os.WriteFile(c.file, []byte(c.is+strings.TrimPrefix(string(content), c.was)), 0o600); err != nil {
			t.Fatal(err)
		}
		store := open(t, dir, 0)
		if _, err := store.Contents(shop); fetch.ReasonOf(err) != fetch.NotFound && fetch.ReasonOf(err) != fetch.DigestMismatch {
			t.Errorf("%s: %v", name, err)
		}
		mustPublish(t, store, shop, "web")
		if _, err := store.Contents(shop); err != nil {
			t.Errorf("%s, published again: %v", name, err)
		}
	}
}
