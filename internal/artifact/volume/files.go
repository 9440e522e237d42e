// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// How files are made.
const (
	TemporaryPrefix = ".tmp-"
	folderMode      = 0o700
	fileMode        = 0o600
	// readBufferBytes is how much of a file is read at once.
	readBufferBytes = 64 << 10
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

// OpenFolder opens a storage folder and creates it first when it is missing.
func OpenFolder(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, WrapError("creating the storage folder", err)
	}
	root, err := os.OpenRoot(dir)
	return root, WrapError("opening the storage folder", err)
}

// MakeFolders creates folder and what is missing above it, durably. A link on the way is refused.
func MakeFolders(files FileSystem, root *os.Root, folder string) error {
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
			return WrapError("creating a folder", err)
		}
		parent = current
	}
	return nil
}

// requireFolder refuses links and files where a folder is expected.
func requireFolder(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err == nil && !info.IsDir() {
		return &fs.PathError{Op: "lstat", Path: name, Err: ErrNotFolder}
	}
	return err
}

// RequireFolders is requireFolder for a folder and all above it.
func RequireFolders(root *os.Root, folder string) error {
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

// OpenRegular opens a regular file for reading. No part of its path may be a link.
func OpenRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	if err := RequireFolders(root, path.Dir(name)); err != nil {
		return nil, nil, err
	}
	before, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, ErrNotRegular
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = ErrReplaced
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// DigestFile hashes a file and returns the state in which it stayed all the while.
func DigestFile(root *os.Root, file string) (digest string, at Stamp, err error) {
	opened, info, err := OpenRegular(root, file)
	if err != nil {
		return "", Stamp{}, err
	}
	defer opened.Close() //nolint:errcheck // only read from
	sum := sha256.New()
	if _, err := io.CopyBuffer(sum, struct{ io.Reader }{opened}, make([]byte, readBufferBytes)); err != nil {
		return "", Stamp{}, err
	}
	after, err := opened.Stat()
	if err == nil && StampOf(after) != StampOf(info) {
		err = ErrReplaced
	}
	return hex.EncodeToString(sum.Sum(nil)), StampOf(info), err
}

// Draft is a file being written under a temporary name, in the folder where it will be published.
type Draft struct {
	files  FileSystem
	root   *os.Root
	folder string
	name   string
	file   File
}

// NewDraft creates the temporary file. The caller discards it in every case; that does nothing once it is published.
func NewDraft(files FileSystem, root *os.Root, folder string) (*Draft, error) {
	name := path.Join(folder, TemporaryPrefix+rand.Text())
	file, err := files.Create(root, name)
	if err != nil {
		return nil, WrapError("creating a temporary file", err)
	}
	return &Draft{files: files, root: root, folder: folder, name: name, file: file}, nil
}

// Write implements io.Writer.
func (d *Draft) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	return n, WrapError("writing", err)
}

// Open opens what was written so far for reading.
func (d *Draft) Open() (*os.File, error) {
	file, err := d.root.Open(d.name)
	return file, WrapError("opening a temporary file", err)
}

// Publish makes the content durable and then gives it its final name in the same folder, durably.
func (d *Draft) Publish(base string) error {
	if err := d.file.Sync(); err != nil {
		return WrapError("syncing", err)
	}
	file := d.file
	d.file = nil
	if err := file.Close(); err != nil {
		return WrapError("closing", err)
	}
	if err := d.files.Rename(d.root, d.name, path.Join(d.folder, base)); err != nil {
		return WrapError("renaming", err)
	}
	d.name = ""
	return WrapError("syncing the folder", d.files.SyncDir(d.root, d.folder))
}

// Discard removes a temporary file that was not published.
func (d *Draft) Discard() {
	if d.file != nil {
		d.file.Close() //nolint:errcheck // its content is thrown away
		d.file = nil
	}
	if d.name != "" {
		d.root.Remove(d.name) //nolint:errcheck // the next start removes what is left
		d.name = ""
	}
}

// WriteDurably creates or replaces one small file.
func WriteDurably(files FileSystem, root *os.Root, name string, content []byte) error {
	file, err := NewDraft(files, root, path.Dir(name))
	if err != nil {
		return err
	}
	defer file.Discard()
	if _, err := file.Write(content); err != nil {
		return err
	}
	return file.Publish(path.Base(name))
}

// RemoveTemporary removes what a killed process left in a folder.
func RemoveTemporary(root *os.Root, folder string) error {
	entries, err := ListFolder(root, folder)
	if err != nil {
		return WrapError("listing a folder", err)
	}
	var failed []error
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), TemporaryPrefix) {
			failed = append(failed, root.RemoveAll(path.Join(folder, entry.Name())))
		}
	}
	return WrapError("removing temporary files", errors.Join(failed...))
}

// ListFolder lists a folder in sorted order.
func ListFolder(root *os.Root, folder string) ([]fs.DirEntry, error) {
	return fs.ReadDir(root.FS(), folder)
}

// CheckUID refuses a key that cannot be the name of a file.
func CheckUID(key string) error {
	if problems := validation.IsDNS1123Label(key); len(problems) > 0 {
		return fmt.Errorf("it is no UID: %s", problems[0])
	}
	return nil
}
