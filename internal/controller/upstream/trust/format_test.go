// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

func TestF56Signatures(t *testing.T) {
	dir := t.TempDir()
	store, err := storage.Open(storage.Options{Dir: dir, BaseURL: "http://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	owner := artifact.SourceOwner("shop", "web")
	stored, err := store.Put(t.Context(), owner, "v1", fstest.MapFS{"a.yaml": {Data: []byte("a")}})
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal([]KeptSignature{{Destination: "a", Digest: "sha256:a", Signature: "signature"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.KeepSignature(t.Context(), owner, stored, content); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, stored.Path+".signatures")
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	formats.Golden(t, format.Signatures, append(append(kept, '\n'), formats.Shape(KeptSignature{})...))

	if err := os.WriteFile(file, []byte("satchel signatures 99\n[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Signature(t.Context(), owner, stored); fetch.ReasonOf(err) != fetch.WrittenByAnotherVersion {
		t.Errorf("of another version: %v", err)
	}
}
