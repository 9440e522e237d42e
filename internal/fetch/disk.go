// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/fetch/packed"
)

// disk keeps the files of a tree, at paths that the tree has checked.
type disk interface { //nolint:interfacebloat // what a folder can do
	// FS returns the files, read only.
	FS() fs.FS
	mkdir(where string) error
	// create opens an empty file, which replaces an earlier one.
	create(where string) (io.WriteCloser, error)
	// remove removes a file or an empty folder.
	remove(where string) error
	// list returns the names in a folder.
	list(where string) ([]string, error)
	Close() error
}

// rootDisk keeps files in a folder.
type rootDisk struct{ *os.Root }

func (d rootDisk) mkdir(where string) error { return d.Mkdir(where, 0o700) }

func (d rootDisk) create(where string) (io.WriteCloser, error) {
	return d.OpenFile(where, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
}

func (d rootDisk) remove(where string) error { return d.Remove(where) }

func (d rootDisk) list(where string) ([]string, error) {
	entries, err := fs.ReadDir(d.FS(), where)
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// packedDisk appends files to one file. What is replaced stays in it unused, and counts against the limits of the tree.
type packedDisk struct {
	write, read *os.File
	at          int64
	entries     map[string]packed.Entry
	children    map[string]map[string]struct{} // names by folder, so that a list costs nothing for other folders
}

func newPackedDisk(write, read *os.File) *packedDisk {
	return &packedDisk{write: write, read: read, entries: map[string]packed.Entry{}, children: map[string]map[string]struct{}{}}
}

// add notes a file or folder.
func (d *packedDisk) add(entry packed.Entry) {
	d.entries[entry.Name] = entry
	folder := path.Dir(entry.Name)
	if d.children[folder] == nil {
		d.children[folder] = map[string]struct{}{}
	}
	d.children[folder][path.Base(entry.Name)] = struct{}{}
}

// index lists the files and folders, sorted.
func (d *packedDisk) index() []packed.Entry {
	index := make([]packed.Entry, 0, len(d.entries))
	for _, entry := range d.entries {
		index = append(index, entry)
	}
	slices.SortFunc(index, func(a, b packed.Entry) int { return strings.Compare(a.Name, b.Name) })
	return index
}

// FS implements disk.
func (d *packedDisk) FS() fs.FS {
	files, err := packed.New(d.read, d.index())
	if err != nil {
		return brokenFS{err}
	}
	return files
}

func (d *packedDisk) mkdir(where string) error {
	d.add(packed.Entry{Name: where, Mode: fs.ModeDir})
	return nil
}

func (d *packedDisk) create(where string) (io.WriteCloser, error) {
	return &packedFile{disk: d, entry: packed.Entry{Name: where, Offset: d.at}}, nil
}

func (d *packedDisk) remove(where string) error {
	delete(d.entries, where)
	delete(d.children, where)
	delete(d.children[path.Dir(where)], path.Base(where))
	return nil
}

func (d *packedDisk) list(where string) ([]string, error) {
	return slices.Sorted(maps.Keys(d.children[where])), nil
}

// Close implements disk.
func (d *packedDisk) Close() error { return d.read.Close() }

// packedFile is a file that is being written; the tree writes one at a time.
type packedFile struct {
	disk  *packedDisk
	entry packed.Entry
}

// Write implements io.Writer.
func (f *packedFile) Write(p []byte) (int, error) {
	n, err := f.disk.write.Write(p)
	f.entry.Size += int64(n)
	f.disk.at += int64(n)
	return n, err
}

// Close implements io.Closer.
func (f *packedFile) Close() error {
	f.disk.add(f.entry)
	return nil
}

// Packed returns the file and the index of a tree of NewPackedTree.
func (t *Tree) Packed() (*os.File, []packed.Entry, error) {
	d, ok := t.disk.(*packedDisk)
	if !ok || t.prefix != "." {
		return nil, nil, errors.New("the tree is not packed")
	}
	if err := d.write.Close(); err != nil {
		return nil, nil, fmt.Errorf("writing a packed tree: %w", err)
	}
	return d.read, d.index(), nil
}
