// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// TestF12EveryStepFails lets each step of a Put fail once with a full disk.
func TestF12EveryStepFails(t *testing.T) {
	var steps []string
	record := hookFS{before: func(op string) error {
		steps = append(steps, op)
		return nil
	}}
	dir := t.TempDir()
	put(t, openStore(t, dir), files(map[string]string{"a": "old"})) // as in failStep
	put(t, openStore(t, dir, func(o *storage.Options) { o.FS = record }), noise(2, 300_000))
	if len(steps) < 14 {
		t.Fatalf("only %d steps: %v", len(steps), steps)
	}
	for i, step := range steps {
		t.Run(fmt.Sprintf("%d %s", i, step), func(t *testing.T) { failStep(t, i) })
	}
}

func failStep(t *testing.T, at int) {
	dir := t.TempDir()
	old := put(t, openStore(t, dir), files(map[string]string{"a": "old"}))
	count, armed := 0, false
	store := openStore(t, dir, func(o *storage.Options) {
		o.FS = hookFS{short: true, before: func(string) error {
			if count++; armed && count == at+1 {
				return &fs.PathError{Op: "write", Path: dir + "/.tmp-RANDOM", Err: syscall.ENOSPC}
			}
			return nil
		}}
	})
	armed = true
	_, err := store.Put(t.Context(), owner, "", noise(2, 300_000))
	var failure *volume.StorageError
	if !errors.As(err, &failure) || !failure.Full() {
		t.Fatalf("a full disk is reported as %v", err)
	}
	if text := err.Error(); !strings.Contains(text, "free space") || strings.Contains(text, dir) || strings.Contains(text, ".tmp-") {
		t.Errorf("the message should say what to do, and be the same at each try: %s", text)
	}
	if left := temporary(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if answer := get(store, old); answer.Code != http.StatusOK {
		t.Errorf("another artifact is answered with %d", answer.Code)
	}
	wholeOrNothing(t, dir)
	a, err := store.Put(t.Context(), owner, "", noise(2, 300_000))
	if err != nil {
		t.Fatalf("with room again: %v", err)
	}
	if err := openStore(t, dir).Verify(t.Context(), owner, a); err != nil {
		t.Error(err)
	}
}

// lyingFS loses what is written and says that all went well.
type lyingFS struct{ volume.OSFileSystem }

func (l lyingFS) Create(root *os.Root, name string) (volume.File, error) {
	file, err := l.OSFileSystem.Create(root, name)
	return lyingFile{file}, err
}

type lyingFile struct{ volume.File }

func (f lyingFile) Write(p []byte) (int, error) { return f.File.Write(make([]byte, len(p))) }

func TestF12LostWrites(t *testing.T) {
	store := openStore(t, t.TempDir(), func(o *storage.Options) { o.FS = lyingFS{} })
	_, err := store.Put(t.Context(), owner, "", files(map[string]string{"a": "1"}))
	var failure *volume.StorageError
	if !errors.As(err, &failure) || failure.Full() || fetch.ReasonOf(err) != "" || !strings.Contains(err.Error(), "check the storage volume") {
		t.Errorf("a volume that loses writes is reported as %v", err)
	}
}

// wholeOrNothing fails when an archive lies at its final place that is not what its name says.
func wholeOrNothing(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".tar.gz") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if got := digestOf(unzip(t, data)); got != "sha256:"+strings.TrimSuffix(entry.Name(), ".tar.gz") {
			t.Errorf("%s holds content with digest %s", entry.Name(), got)
		}
		recorded, err := os.ReadFile(path + ".sha256")
		if want := digestOf(data)[len("sha256:"):] + "  " + entry.Name() + "\n"; string(recorded) != want {
			t.Errorf("the recorded digest is %q where %q was expected: %v", recorded, want, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestF12RealDisk fills a small file system.
func TestF12RealDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	store := openStore(t, dir)
	stored, refused := fill(t, store, 20)
	if len(stored) < 5 || len(refused) < 10 {
		t.Fatalf("%d were stored and %d refused", len(stored), len(refused))
	}
	if left := temporary(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	wholeOrNothing(t, dir)
	for o, a := range stored {
		if answer := get(store, a); answer.Code != http.StatusOK || digestOf(answer.Body.Bytes()) != a.Digest {
			t.Errorf("%s is answered with %d", o, answer.Code)
		}
	}
	for o := range stored {
		if err := store.Remove(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for seed, o := range refused[:3] {
		if _, err := store.Put(t.Context(), o, "", noise(uint64(seed), 1<<20)); err != nil {
			t.Errorf("with room again: %v", err)
		}
	}
}

// fill stores artifacts of 1 MiB and returns the owners of the stored and of the refused ones.
func fill(t *testing.T, store *storage.Store, n int) (stored map[artifact.Owner]meta.Artifact, refused []artifact.Owner) {
	t.Helper()
	stored = map[artifact.Owner]meta.Artifact{}
	for i := range n {
		o := artifact.Owner{Kind: "bundlesource", Namespace: fmt.Sprintf("team-%d", i), Name: "app"}
		a, err := store.Put(t.Context(), o, "", noise(uint64(100+i), 1<<20))
		var failure *volume.StorageError
		switch {
		case err == nil:
			stored[o] = a
		case errors.As(err, &failure) && failure.Full():
			refused = append(refused, o)
		default:
			t.Fatalf("a full disk is reported as %v", err)
		}
	}
	return stored, refused
}
