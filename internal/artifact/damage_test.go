// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// damage is one way in which a stored file can go bad.
type damage struct {
	reason string
	do     func(file string) error
	want   fetch.Reason
}

func damages() map[string]damage {
	return map[string]damage{
		"truncated": {"a full disk or a lost write", func(file string) error {
			return os.Truncate(file, 100)
		}, fetch.DigestMismatch},
		"zero length": {"what a power cut leaves without fsync", func(file string) error {
			return os.Truncate(file, 0)
		}, fetch.DigestMismatch},
		"bit flipped": {"same size, other bytes", flipBit, fetch.DigestMismatch},
		"bit flipped, time restored": {"size and modification time are as before", func(file string) error {
			info, err := os.Stat(file)
			if err != nil {
				return err
			}
			return errors.Join(flipBit(file), os.Chtimes(file, info.ModTime(), info.ModTime()))
		}, fetch.DigestMismatch},
		"grown": {"bytes were appended", func(file string) error {
			out, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = out.WriteString("x")
			return errors.Join(err, out.Close())
		}, fetch.DigestMismatch},
		"symlink to the same bytes": {"a link is never followed, wherever it leads", func(file string) error {
			return errors.Join(os.Rename(file, file+".moved"), os.Symlink(filepath.Base(file)+".moved", file))
		}, fetch.DigestMismatch},
		"symlink out": {"a link must not serve a file of the machine", func(file string) error {
			return errors.Join(os.Remove(file), os.Symlink("/etc/hostname", file))
		}, fetch.DigestMismatch},
		"folder": {"a folder has no bytes", func(file string) error {
			return errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "x"), 0o700))
		}, fetch.DigestMismatch},
		"deleted": {"", os.Remove, fetch.NotFound},
		"folder of the owner is a link": {"a link in the path leads to another owner's files", func(file string) error {
			folder := filepath.Dir(file)
			return errors.Join(os.Rename(folder, folder+"-moved"), os.Symlink(filepath.Base(folder)+"-moved", folder))
		}, fetch.DigestMismatch},
		"storage deleted": {"an emptyDir was emptied", func(file string) error {
			return os.RemoveAll(filepath.Join(filepath.Dir(file), "../../.."))
		}, fetch.NotFound},
		"digest deleted": {"without the recorded digest nothing can be checked", func(file string) error {
			return os.Remove(file + ".sha256")
		}, fetch.DigestMismatch},
		"digest damaged": {"", func(file string) error {
			return os.Truncate(file+".sha256", 20)
		}, fetch.DigestMismatch},
		"digest of another file": {"the recorded digest names its file", func(file string) error {
			recorded, err := os.ReadFile(file + ".sha256")
			return errors.Join(err, os.WriteFile(file+".sha256", append(recorded[:66], "other.tar.gz\n"...), 0o600))
		}, fetch.DigestMismatch},
	}
}

func flipBit(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	data[len(data)/2] ^= 1
	out, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = out.WriteAt(data, 0)
	return errors.Join(err, out.Close())
}

// aged lets the store trust what it has read, as it does two seconds after a file was written.
func aged(o *storage.Options) {
	o.Now = func() time.Time { return time.Now().Add(time.Minute) }
}

func TestF9DamageWhileRunning(t *testing.T) {
	for name, tc := range damages() {
		if tc.want == fetch.DigestMismatch && len(name) > 6 && name[:6] == "digest" {
			continue // once read, the recorded digest is not needed any more
		}
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "storage")
			store := openStore(t, dir, aged)
			a := put(t, store, noise(1, 10_000))
			if err := store.Verify(t.Context(), owner, a); err != nil {
				t.Fatal(err)
			}
			expectDamage(t, store, dir, a, tc)
		})
	}
}

func TestF9DamageWhileStopped(t *testing.T) {
	for name, tc := range damages() {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "storage")
			a := put(t, openStore(t, dir), noise(1, 10_000))
			if err := tc.do(filepath.Join(dir, a.Path)); err != nil {
				t.Fatal(err)
			}
			tc.do = func(string) error { return nil }
			expectDamage(t, openStore(t, dir, aged), dir, a, tc)
		})
	}
}

// expectDamage damages the file, sees that it is found and not served, and that storing it again repairs it.
func expectDamage(t *testing.T, store *storage.Store, dir string, a meta.Artifact, tc damage) {
	t.Helper()
	if err := tc.do(filepath.Join(dir, a.Path)); err != nil {
		t.Fatal(err)
	}
	wantReason(t, store.Verify(t.Context(), owner, a), tc.want)
	status := http.StatusServiceUnavailable
	if tc.want == fetch.NotFound {
		status = http.StatusNotFound
	}
	if answer := get(store, a); answer.Code != status {
		t.Errorf("GET answered %d where %d was expected: %s", answer.Code, status, tc.reason)
	}
	wantReason(t, openStore(t, dir).Verify(t.Context(), owner, a), tc.want)
	if filepath.Base(t.Name()) == "folder_of_the_owner_is_a_link" {
		_, err := store.Put(t.Context(), owner, "main", noise(2, 10_000))
		moved, listing := os.ReadDir(filepath.Join(dir, filepath.Dir(a.Path)+"-moved"))
		if err == nil || listing != nil || len(moved) != 2 {
			t.Errorf("Put went through a link: %v, %v, %v", err, moved, listing)
		}
		return
	}
	again, err := store.Put(t.Context(), owner, "main", noise(1, 10_000))
	if err != nil || again.Digest != a.Digest {
		t.Fatalf("storing it again gives %s where it was %s: %v", again.Digest, a.Digest, err)
	}
	if err := store.Verify(t.Context(), owner, a); err != nil {
		t.Errorf("storing it again did not repair it: %v", err)
	}
	if answer := get(store, a); answer.Code != http.StatusOK || digestOf(answer.Body.Bytes()) != a.Digest {
		t.Errorf("GET answered %d after the repair", answer.Code)
	}
}

func TestF9VerifyReadsOnlyWhatChanged(t *testing.T) {
	dir := t.TempDir()
	now := &clock{now: time.Now().Add(time.Minute)}
	store := openStore(t, dir, func(o *storage.Options) { o.Now = now.Now })
	a := put(t, store, files(map[string]string{"a": "1"}))
	// The recorded digest is only looked at when the file is read, so that taking it away shows a read.
	if err := os.Remove(filepath.Join(dir, a.Path+".sha256")); err != nil {
		t.Fatal(err)
	}
	if err := store.Verify(t.Context(), owner, a); err != nil {
		t.Errorf("an unchanged file was read again: %v", err)
	}
	now.add(2 * time.Hour)
	wantReason(t, store.Verify(t.Context(), owner, a), fetch.DigestMismatch)
}

func TestF9FreshFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, dir) // the real time: the file was written within the last two seconds
	a := put(t, store, files(map[string]string{"a": "1"}))
	if err := os.Remove(filepath.Join(dir, a.Path+".sha256")); err != nil {
		t.Fatal(err)
	}
	wantReason(t, store.Verify(t.Context(), owner, a), fetch.DigestMismatch)
}

func TestVerifyComparesWithTheStatus(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, dir)
	a := put(t, store, files(map[string]string{"a": "1"}))
	wrong := int64(7)
	cases := map[string]struct {
		reason string
		edit   func(*meta.Artifact, *artifact.Owner)
		want   fetch.Reason
	}{
		"digest": {"the status advertises other bytes", func(a *meta.Artifact, _ *artifact.Owner) {
			a.Digest = digestOf(nil)
		}, fetch.DigestMismatch},
		"size": {"the status advertises another size", func(a *meta.Artifact, _ *artifact.Owner) {
			a.Size = &wrong
		}, fetch.DigestMismatch},
		"path": {"the path must be the owner's", func(a *meta.Artifact, _ *artifact.Owner) {
			a.Path = "bundlesource/other/app/" + filepath.Base(a.Path)
		}, fetch.Refused},
		"owner": {"another owner has not got it", func(_ *meta.Artifact, o *artifact.Owner) {
			o.Namespace = "other"
		}, fetch.Refused},
		"revision": {"the revision carries no identity", func(a *meta.Artifact, _ *artifact.Owner) {
			a.Revision = "main@sha1:abc"
		}, fetch.Refused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			edited, by := a, owner
			tc.edit(&edited, &by)
			wantReason(t, store.Verify(t.Context(), by, edited), tc.want)
		})
	}
	if err := store.Verify(t.Context(), owner, a); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := openStore(t, dir).Verify(ctx, owner, a); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context gives %v", err)
	}
}
