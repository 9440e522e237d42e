// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/satchel-dev/satchel/internal/artifact/volume"
)

// fullFiles has no room for one operation.
type fullFiles struct {
	volume.OSFileSystem
	at, count int // the operation that fails, and how many there were; 0 fails none
}

func (f *fullFiles) step() error {
	if f.count++; f.count == f.at {
		return &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	}
	return nil
}

func (f *fullFiles) Create(root *os.Root, name string) (volume.File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := f.OSFileSystem.Create(root, name)
	return &fullFile{file, f}, err
}

func (f *fullFiles) Rename(root *os.Root, from, to string) error {
	return errors.Join(f.step(), f.OSFileSystem.Rename(root, from, to))
}

func (f *fullFiles) SyncDir(root *os.Root, name string) error {
	return errors.Join(f.step(), f.OSFileSystem.SyncDir(root, name))
}

type fullFile struct {
	volume.File
	files *fullFiles
}

func (f *fullFile) Write(p []byte) (int, error) {
	if err := f.files.step(); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *fullFile) Sync() error { return errors.Join(f.files.step(), f.File.Sync()) }

// C26: with a full disk at any operation, the former catalog stays served, nothing is left behind, and the next try succeeds.
func TestC26FullDisk(t *testing.T) {
	for at := 1; ; at++ {
		dir := t.TempDir()
		files := &fullFiles{}
		store, err := openStore(dir, 0, files)
		if err != nil {
			t.Fatal(err)
		}
		mustPublish(t, store, first, "shop")
		files.at = at
		files.count = 0
		_, err = publish(store, first, "bakery")
		if err == nil {
			if at < 15 {
				t.Errorf("only %d operations can fail", at-1)
			}
			break
		}
		var failure *volume.StorageError
		if !errors.As(err, &failure) || !failure.Full() {
			t.Errorf("operation %d: a full disk is reported as %v", at, err)
		}
		contents, err := store.Contents(first)
		if err != nil || contents.Index.Packages[0].Name != "shop" {
			t.Fatalf("operation %d: the former catalog is not served: %v %v", at, contents, err)
		}
		if left := contentsIn(t, dir); len(left) != 1 {
			t.Errorf("operation %d: %v stay", at, left)
		}
		mustPublish(t, store, first, "bakery")
		if contents, err := open(t, dir, 0).Contents(first); err != nil || contents.Index.Packages[0].Name != "bakery" {
			t.Errorf("operation %d: with room again, the new catalog is not served: %v %v", at, contents, err)
		}
	}
}
