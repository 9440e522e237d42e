// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// The tests of storage, server, loader, cache and lastapplied are here, since most of them load what they stored.

// owner is the owner that most tests store for.
var owner = artifact.Owner{Kind: "bundlesource", Namespace: "platform", Name: "app"}

// noisy is by how much a figure may miss its target on a machine that does other things too.
const noisy = 6

// full tells whether tests run at the sizes of docs/dev/reliability.md or scaled down.
func full() bool { return os.Getenv("SATCHEL_FULL") != "" }

// files makes a tree of names and contents.
func files(contents map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, content := range contents {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return tree
}

// noise is a tree of one file that cannot be compressed.
func noise(seed uint64, size int) fstest.MapFS {
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	random.Read(data) //nolint:errcheck // never fails
	return fstest.MapFS{"noise": &fstest.MapFile{Data: data}}
}

func openStore(t *testing.T, dir string, edit ...func(*storage.Options)) *storage.Store {
	t.Helper()
	o := storage.Options{Dir: dir, BaseURL: "http://artifacts.test"}
	for _, e := range edit {
		e(&o)
	}
	store, err := storage.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// put stores a tree for owner.
func put(t *testing.T, store *storage.Store, tree fs.FS) meta.Artifact {
	t.Helper()
	a, err := store.Put(t.Context(), owner, "main", tree)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// get asks the store's handler for an artifact.
func get(store *storage.Store, a meta.Artifact) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	server.NewHandler(store, server.Options{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/"+a.Path, http.NoBody))
	return answer
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// temporary lists what lies below dir under a temporary name.
func temporary(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), ".tmp-") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// wantReason fails unless err has the reason.
func wantReason(t *testing.T, err error, reason fetch.Reason) {
	t.Helper()
	if got := fetch.ReasonOf(err); got != reason || err == nil {
		t.Errorf("the reason is %q where %q was expected: %v", got, reason, err)
	}
}

// hookFS calls a hook before each operation, which fails with what the hook returns; a write may be cut short before.
type hookFS struct {
	volume.OSFileSystem
	before func(op string) error
	after  func(op string)
	short  bool
}

func (h hookFS) run(op string, do func() error) error {
	if h.before != nil {
		if err := h.before(op); err != nil {
			return err
		}
	}
	err := do()
	if h.after != nil && err == nil {
		h.after(op)
	}
	return err
}

func (h hookFS) Create(root *os.Root, name string) (file volume.File, err error) {
	err = h.run("create", func() error {
		file, err = h.OSFileSystem.Create(root, name)
		return err
	})
	return hookFile{file, h}, err
}

func (h hookFS) Rename(root *os.Root, from, to string) error {
	return h.run("rename to "+filepath.Ext(to), func() error { return h.OSFileSystem.Rename(root, from, to) })
}

func (h hookFS) SyncDir(root *os.Root, name string) error {
	return h.run("syncdir", func() error { return h.OSFileSystem.SyncDir(root, name) })
}

type hookFile struct {
	volume.File
	hooks hookFS
}

func (f hookFile) Write(p []byte) (n int, err error) {
	if f.hooks.short {
		half := len(p) / 2
		if n, err = f.File.Write(p[:half]); err != nil {
			return n, err
		}
		p = p[half:]
	}
	err = f.hooks.run("write", func() error {
		var more int
		more, err = f.File.Write(p)
		n += more
		return err
	})
	return n, err
}

func (f hookFile) Sync() error  { return f.hooks.run("sync", f.File.Sync) }
func (f hookFile) Close() error { return f.hooks.run("close", f.File.Close) }

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
