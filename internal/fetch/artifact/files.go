// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

const (
	temporaryPrefix = ".tmp-"
	folderMode      = 0o700
	fileMode        = 0o600
)

// FileSystem is the part of the file system through which everything durable is written, so that a test can fail or kill
// at each step. Names are relative to root.
type FileSystem interface {
	// Create makes a file that does not exist yet, readable by its owner only.
	Create(root *os.Root, name string) (File, error)
	// Rename replaces what is at the destination.
	Rename(root *os.Root, from, to string) error
	// SyncDir makes the entries of a folder durable.
	SyncDir(root *os.Root, name string) error
}

// File is a file being written.
type File interface {
	io.WriteCloser
	Sync() error
}

// OSFileSystem is the real FileSystem.
type OSFileSystem struct{}

// Create implements FileSystem.
func (OSFileSystem) Create(root *os.Root, name string) (File, error) {
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
}

// Rename implements FileSystem.
func (OSFileSystem) Rename(root *os.Root, from, to string) error { return root.Rename(from, to) }

// SyncDir implements FileSystem.
func (OSFileSystem) SyncDir(root *os.Root, name string) error {
	folder, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// openRoot opens a storage folder and creates it first when it is missing.
func openRoot(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, storageError("creating the storage folder", err)
	}
	root, err := os.OpenRoot(dir)
	return root, storageError("opening the storage folder", err)
}

// makeFolders creates folder and what is missing above it, durably. A link on the way is refused.
func makeFolders(files FileSystem, root *os.Root, folder string) error {
	parent := "."
	for part := range strings.SplitSeq(folder, "/") {
		current := path.Join(parent, part)
		err := root.Mkdir(current, folderMode)
		switch {
		case err == nil:
			err = files.SyncDir(root, parent)
		case errors.Is(err, fs.ErrExist):
			err = requireFolder(root, current)
		}
		if err != nil {
			return storageError("creating a folder", err)
		}
		parent = current
	}
	return nil
}

// requireFolder refuses links and files where a folder is expected.
func requireFolder(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err == nil && !info.IsDir() {
		return &fs.PathError{Op: "lstat", Path: name, Err: errNotFolder}
	}
	return err
}

// requireFolders is requireFolder for a folder and all above it.
func requireFolders(root *os.Root, folder string) error {
	for i, c := range folder {
		if c != '/' {
			continue
		}
		if err := requireFolder(root, folder[:i]); err != nil {
			return err
		}
	}
	return requireFolder(root, folder)
}

// openRegular opens a regular file for reading. No part of its path may be a link.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	if err := requireFolders(root, path.Dir(name)); err != nil {
		return nil, nil, err
	}
	before, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, errNotRegular
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = errReplaced
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// draft is a file being written under a temporary name, in the folder where it will be published.
type draft struct {
	files  FileSystem
	root   *os.Root
	folder string
	name   string
	file   File
}

// newDraft creates the temporary file. The caller discards it in every case; that does nothing once it is published.
func newDraft(files FileSystem, root *os.Root, folder string) (*draft, error) {
	name := path.Join(folder, temporaryPrefix+rand.Text())
	file, err := files.Create(root, name)
	if err != nil {
		return nil, storageError("creating a temporary file", err)
	}
	return &draft{files: files, root: root, folder: folder, name: name, file: file}, nil
}

// Write implements io.Writer.
func (d *draft) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	return n, storageError("writing", err)
}

// publish makes the content durable and then gives it its final name in the same folder, durably.
func (d *draft) publish(base string) error {
	if err := d.file.Sync(); err != nil {
		return storageError("syncing", err)
	}
	file := d.file
	d.file = nil
	if err := file.Close(); err != nil {
		return storageError("closing", err)
	}
	if err := d.files.Rename(d.root, d.name, path.Join(d.folder, base)); err != nil {
		return storageError("renaming", err)
	}
	d.name = ""
	return storageError("syncing the folder", d.files.SyncDir(d.root, d.folder))
}

// discard removes a temporary file that was not published.
func (d *draft) discard() {
	if d.file != nil {
		d.file.Close() //nolint:errcheck // its content is thrown away
		d.file = nil
	}
	if d.name != "" {
		d.root.Remove(d.name) //nolint:errcheck // the next start removes what is left
		d.name = ""
	}
}

// writeDurably creates or replaces one small file.
func writeDurably(files FileSystem, root *os.Root, name string, content []byte) error {
	file, err := newDraft(files, root, path.Dir(name))
	if err != nil {
		return err
	}
	defer file.discard()
	if _, err := file.Write(content); err != nil {
		return err
	}
	return file.publish(path.Base(name))
}

// removeTemporary removes what a killed process left in a folder.
func removeTemporary(root *os.Root, folder string) error {
	entries, err := listFolder(root, folder)
	if err != nil {
		return storageError("listing a folder", err)
	}
	var failed []error
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), temporaryPrefix) {
			failed = append(failed, root.RemoveAll(path.Join(folder, entry.Name())))
		}
	}
	return storageError("removing temporary files", errors.Join(failed...))
}

// listFolder lists a folder in sorted order.
func listFolder(root *os.Root, folder string) ([]fs.DirEntry, error) {
	return fs.ReadDir(root.FS(), folder)
}
