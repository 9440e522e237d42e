// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/cache"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
)

// unsynced is a file system that does not wait for the disk.
type unsynced struct{ volume.OSFileSystem }

type unsyncedFile struct{ volume.File }

func (unsyncedFile) Sync() error { return nil }

func (f unsynced) Create(root *os.Root, name string) (volume.File, error) {
	file, err := f.OSFileSystem.Create(root, name)
	return unsyncedFile{file}, err
}

func (unsynced) SyncDir(*os.Root, string) error { return nil }

const archiveBytes = 100

// filled is a cache with an archive of each of so many sources, half of them pinned, that has room for as many bytes as given.
func filled(t *testing.T, archives int, room int64) *cache.Cache {
	t.Helper()
	filled, err := cache.Open(cache.Options{Dir: t.TempDir(), Bytes: room, FS: unsynced{}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for i := range archives {
		add(t, filled, i)
		if i%2 == 0 {
			if err := filled.Pin(fmt.Sprint("uid-", i), []string{cache.Key(ownerOf(i), digestOf(i))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return filled
}

func ownerOf(i int) artifact.Owner { return artifact.SourceOwner("many", fmt.Sprint("source-", i)) }

func digestOf(i int) string { return fmt.Sprintf("%064x", i) }

func add(t *testing.T, to *cache.Cache, i int) {
	t.Helper()
	err := to.Add(t.Context(), ownerOf(i), digestOf(i), archiveBytes, func(w io.Writer) error {
		_, err := io.Copy(w, strings.NewReader(strings.Repeat("x", archiveBytes)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// perArchive is how many bytes the next archives of a cache allocate, each.
func perArchive(t *testing.T, in *cache.Cache, from int) uint64 {
	t.Helper()
	const more = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range more {
		add(t, in, from+i)
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / more
}

// TestAnArchiveCostsTheSameAmongMany adds archives to a cache with room and to a full one: what one allocates does not grow with the
// number of the others, since thousands of deployments are created at once.
func TestAnArchiveCostsTheSameAmongMany(t *testing.T) {
	const few, many = 100, 1000
	for name, room := range map[string]func(archives int) int64{
		"room": func(int) int64 { return 1 << 30 },
		"full": func(archives int) int64 { return int64(archives * archiveBytes) },
	} {
		t.Run(name, func(t *testing.T) {
			small, large := filled(t, few, room(few)), filled(t, many, room(many))
			amongFew, amongMany := perArchive(t, small, few), perArchive(t, large, many)
			t.Logf("an archive allocates %d bytes among %d, and %d among %d", amongFew, few, amongMany, many)
			if amongMany > amongFew+amongFew/2 {
				t.Error("that grows with the number of archives")
			}
			if name == "full" && (small.Size() != room(few) || large.Size() != room(many)) {
				t.Errorf("the caches have %d and %d bytes, and nothing was evicted", small.Size(), large.Size())
			}
		})
	}
}
