// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
)

func TestPutDescribesWhatIsServed(t *testing.T) {
	store := openStore(t, t.TempDir())
	a := put(t, store, files(map[string]string{"manifests/a.yaml": "a: 1\n"}))
	answer := get(store, a)
	if answer.Code != http.StatusOK {
		t.Fatalf("GET answered %d", answer.Code)
	}
	body := answer.Body.Bytes()
	if digestOf(body) != a.Digest || a.Size == nil || *a.Size != int64(len(body)) {
		t.Errorf("served are %d bytes with %s, advertised %v with %s", len(body), digestOf(body), a.Size, a.Digest)
	}
	identity, ok := strings.CutPrefix(a.Revision, "main@sha256:")
	if want := "bundlesource/platform/app/" + identity + ".tar.gz"; !ok || a.Path != want || a.URL != "http://artifacts.test/"+want {
		t.Errorf("revision %s, path %s, URL %s", a.Revision, a.Path, a.URL)
	}
	if err := store.Verify(t.Context(), owner, a); err != nil {
		t.Error(err)
	}
}

func TestPutTwiceStoresOnce(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, dir)
	tree := files(map[string]string{"a": "1"})
	first := put(t, store, tree)
	before, err := os.Stat(filepath.Join(dir, first.Path))
	if err != nil {
		t.Fatal(err)
	}
	second := put(t, openStore(t, dir), tree) // also by the next process
	after, err := os.Stat(filepath.Join(dir, first.Path))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Error("a published file was touched")
	}
	if first.Digest != second.Digest || !first.LastUpdateTime.Equal(&second.LastUpdateTime) {
		t.Errorf("the same content was described as %v and %v", first, second)
	}
	if left := temporary(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPutOrderOfDurability(t *testing.T) {
	var steps []string
	dir := t.TempDir()
	store := openStore(t, dir, func(o *storage.Options) {
		o.FS = hookFS{after: func(op string) {
			if op != "write" || steps[len(steps)-1] != "write" {
				steps = append(steps, op)
			}
		}}
	})
	put(t, store, files(map[string]string{"a": "1"}))
	want := strings.Repeat("syncdir ", 3) + // the folders that were created
		"create write " + // the archive
		"create write sync close rename to .sha256 syncdir " + // its digest, durable before the archive appears
		"sync close rename to .gz syncdir"
	if got := strings.Join(steps, " "); got != want {
		t.Errorf("the steps were\n%s\nwhere expected were\n%s", got, want)
	}
}

func TestPutRefusesForeignFolders(t *testing.T) {
	cases := map[string]struct {
		reason string
		owner  artifact.Owner
	}{
		"parent":    {"a name must not leave the owner's folder", artifact.Owner{Kind: "bundlesource", Namespace: "a", Name: ".."}},
		"slash":     {"a name must not reach another namespace", artifact.Owner{Kind: "bundlesource", Namespace: "a", Name: "b/../../c"}},
		"empty":     {"an empty part would name the folder above", artifact.Owner{Kind: "bundlesource", Name: "app"}},
		"kind":      {"the kind is a folder too", artifact.Owner{Kind: ".", Namespace: "a", Name: "b"}},
		"uppercase": {"file systems that fold case would mix owners", artifact.Owner{Kind: "BundleSource", Namespace: "a", Name: "b"}},
		"dotted ns": {"namespaces have no dots", artifact.Owner{Kind: "bundlesource", Namespace: "a.b", Name: "c"}},
		"temporary": {"names of temporary files belong to the store", artifact.Owner{Kind: "bundlesource", Namespace: "a", Name: ".tmp-x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store := openStore(t, dir)
			if _, err := store.Put(t.Context(), tc.owner, "", files(map[string]string{"a": "1"})); err == nil {
				t.Errorf("Put accepted %q: %s", tc.owner, tc.reason)
			}
			if err := store.Remove(t.Context(), tc.owner); err == nil {
				t.Errorf("Remove accepted %q: %s", tc.owner, tc.reason)
			}
			if entries, _ := os.ReadDir(dir); len(entries) > 0 {
				t.Errorf("something was written: %v", entries)
			}
		})
	}
}

func TestPutEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := store.Put(ctx, owner, "", cancellingFS{noise(1, 1<<20), cancel})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Put ended with %v", err)
	}
	if left := temporary(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// cancellingFS cancels as soon as a file is read.
type cancellingFS struct {
	fs.FS
	cancel func()
}

func (c cancellingFS) Open(name string) (fs.File, error) {
	if name == "noise" {
		c.cancel()
	}
	return c.FS.Open(name)
}

func TestOpenTidiesUp(t *testing.T) {
	dir := t.TempDir()
	a := put(t, openStore(t, dir), files(map[string]string{"a": "1"}))
	stray := filepath.Join(dir, filepath.Dir(a.Path), ".tmp-STRAY")
	empty := filepath.Join(dir, "bundlesource", "gone", "app")
	foreign := filepath.Join(dir, "lost+found")
	err := errors.Join(os.WriteFile(stray, []byte("half"), 0o600), os.MkdirAll(empty, 0o700), os.Mkdir(foreign, 0))
	if err != nil {
		t.Fatal(err)
	}
	store := openStore(t, dir)
	for _, gone := range []string{stray, empty, filepath.Dir(empty)} {
		if _, err := os.Lstat(gone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there", gone)
		}
	}
	if _, err := os.Lstat(foreign); err != nil {
		t.Errorf("a folder that is not the store's is gone: %v", err)
	}
	if err := store.Verify(t.Context(), owner, a); err != nil {
		t.Error(err)
	}
}

func TestAdoptRewritesTheURL(t *testing.T) {
	dir := t.TempDir()
	a := put(t, openStore(t, dir), files(map[string]string{"a": "1"}))
	moved := openStore(t, dir, func(o *storage.Options) { o.BaseURL = "https://elsewhere.test:8443/" }).Adopt(a)
	if moved.URL != "https://elsewhere.test:8443/"+a.Path {
		t.Errorf("the URL is %s", moved.URL)
	}
	moved.URL = a.URL
	if moved.Digest != a.Digest || moved.Path != a.Path || moved.Revision != a.Revision {
		t.Errorf("more than the URL changed: %v", moved)
	}
}
