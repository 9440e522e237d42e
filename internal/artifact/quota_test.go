// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
)

// quotaOf bounds what a namespace may store.
func quotaOf(bytes int64) func(*storage.Options) {
	return func(o *storage.Options) { o.NamespaceBytes = bytes }
}

func sourceOwner(namespace, name string) artifact.Owner { return artifact.SourceOwner(namespace, name) }

// wantQuota fails unless the error is a refusal by quota that says what to do.
func wantQuota(t *testing.T, err error) {
	t.Helper()
	var refused *storage.QuotaError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "--storage-quota-per-namespace") {
		t.Errorf("beyond the quota: %v", err)
	}
}

func TestQuotaOfANamespace(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, dir, quotaOf(250_000))
	mustPut := func(o artifact.Owner, seed uint64) meta.Artifact {
		t.Helper()
		a, err := store.Put(t.Context(), o, "", noise(seed, 100_000))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	mustPut(sourceOwner("a", "one"), 1)
	second := mustPut(sourceOwner("a", "two"), 2)
	_, err := store.Put(t.Context(), sourceOwner("a", "three"), "", noise(3, 100_000))
	wantQuota(t, err)
	if left := temporary(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if again := mustPut(sourceOwner("a", "two"), 2); again.Digest != second.Digest {
		t.Error("the same content again is another artifact")
	}
	mustPut(sourceOwner("b", "one"), 3) // another namespace is left alone
	if answer := get(store, second); answer.Code != http.StatusOK {
		t.Errorf("what is stored is answered with %d", answer.Code)
	}
	if stats := store.Stats(); stats.Artifacts != 3 || stats.Refused != 1 || stats.Namespaces != 2 || stats.Bytes < 300_000 || stats.Bytes > 310_000 {
		t.Errorf("the figures are %+v", stats)
	}
	store = openStore(t, dir, quotaOf(250_000))
	_, err = store.Put(t.Context(), sourceOwner("a", "three"), "", noise(3, 100_000))
	wantQuota(t, err) // also after a restart
	if err := store.Remove(t.Context(), sourceOwner("a", "one")); err != nil {
		t.Fatal(err)
	}
	mustPut(sourceOwner("a", "three"), 3)
	if err := os.Remove(filepath.Join(dir, second.Path)); err != nil {
		t.Fatal(err)
	}
	mustPut(sourceOwner("a", "four"), 4) // what was lost on disk takes no room
}

// TestQuotaCountsCollected supersedes artifacts of one source: what was collected does not count.
func TestQuotaCountsCollected(t *testing.T) {
	store := openStore(t, t.TempDir(), quotaOf(250_000))
	for i := range 6 {
		if _, err := store.Put(t.Context(), owner, "", noise(uint64(i), 100_000)); err != nil {
			t.Fatalf("revision %d: %v", i, err)
		}
		if _, err := store.Collect(t.Context(), owner, func(string) bool { return false }, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	if stats := store.Stats(); stats.Artifacts != 1 {
		t.Errorf("the figures are %+v", stats)
	}
}

// TestQuotaHoldsForManyAtOnce stores from many sources of one namespace at the same time.
func TestQuotaHoldsForManyAtOnce(t *testing.T) {
	const quota = 450_000
	store := openStore(t, t.TempDir(), quotaOf(quota))
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			_, err := store.Put(t.Context(), sourceOwner("a", fmt.Sprintf("s%d", i)), "", noise(uint64(i), 100_000))
			if err != nil {
				wantQuota(t, err)
			}
		})
	}
	group.Wait()
	if stats := store.Stats(); stats.Artifacts != 4 || stats.Bytes > quota || stats.Refused != 8 {
		t.Errorf("the figures are %+v", stats)
	}
}

// perSource is how often one more source allocates memory, from the first artifact to its removal, in a namespace with so many.
func perSource(t *testing.T, sources int) float64 {
	t.Helper()
	dir := t.TempDir()
	for i := range sources {
		file := filepath.Join(dir, sourceOwner("a", fmt.Sprint("source-", i)).File(fmt.Sprintf("%064x", i)))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("stored before"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	store, tree := openStore(t, dir, quotaOf(1<<30)), noise(1, 1000)
	return testing.AllocsPerRun(5, func() {
		if _, err := store.Put(t.Context(), sourceOwner("a", "new"), "", tree); err != nil {
			t.Fatal(err)
		}
		if err := store.Remove(t.Context(), sourceOwner("a", "new")); err != nil {
			t.Fatal(err)
		}
	})
}

// TestASourceCostsTheSameAmongMany stores and removes the artifact of a source: what that costs does not grow with the number of
// other sources of the namespace.
func TestASourceCostsTheSameAmongMany(t *testing.T) {
	const few, many = 50, 2000
	amongFew, amongMany := perSource(t, few), perSource(t, many)
	t.Logf("%.0f allocations among %d sources, %.0f among %d", amongFew, few, amongMany, many)
	if amongMany > amongFew+amongFew/4 {
		t.Error("that grows with the number of sources")
	}
}
