// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"time"
)

// info implements fs.FileInfo.
type info struct{ entry Entry }

func (n *node) info() info { return info{n.entry} }

// Name implements fs.FileInfo.
func (i info) Name() string { return path.Base(i.entry.Name) }

// Size implements fs.FileInfo.
func (i info) Size() int64 { return i.entry.Size }

// Mode implements fs.FileInfo: what the artifact says of permissions is not kept.
func (i info) Mode() fs.FileMode {
	if i.entry.Mode.IsDir() {
		return i.entry.Mode | 0o555
	}
	return i.entry.Mode | 0o444
}

// ModTime implements fs.FileInfo: it is not kept.
func (i info) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (i info) IsDir() bool { return i.entry.Mode.IsDir() }

// Sys implements fs.FileInfo.
func (i info) Sys() any { return nil }

// file is an open regular file.
type file struct {
	*io.SectionReader

	node *node
}

// Stat implements fs.File.
func (f *file) Stat() (fs.FileInfo, error) { return f.node.info(), nil }

// Close implements fs.File.
func (f *file) Close() error { return nil }

// folder is an open folder.
type folder struct {
	node *node
	at   int
}

// Stat implements fs.File.
func (f *folder) Stat() (fs.FileInfo, error) { return f.node.info(), nil }

// Close implements fs.File.
func (f *folder) Close() error { return nil }

// Read implements fs.File.
func (f *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.node.entry.Name, Err: errors.New("is a folder")}
}

// ReadDir implements fs.ReadDirFile.
func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	left := f.node.children[f.at:]
	if n > 0 && len(left) == 0 {
		return nil, io.EOF
	}
	if n > 0 && n < len(left) {
		left = left[:n]
	}
	f.at += len(left)
	entries := make([]fs.DirEntry, 0, len(left))
	for _, child := range left {
		entries = append(entries, fs.FileInfoToDirEntry(child.info()))
	}
	return entries, nil
}
