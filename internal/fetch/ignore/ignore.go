// SPDX-License-Identifier: Apache-2.0

// Package ignore leaves files out of a tree, by patterns in the syntax of .gitignore.
package ignore

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/fetch/links"
)

// vcs are the folders of version control systems, which no bundle is made of.
var vcs = []string{".git", ".hg", ".svn", ".bzr", "CVS"}

// FS returns files without those that a list of patterns names, one on a line, and without the folders of version
// control systems unless a pattern takes them back in. A list that is too long or too costly is an *fetch.Error.
//
// As for Git, the last pattern that matches decides, and nothing below a folder that is left out can be taken back in.
func FS(files fs.FS, list string) (fs.FS, error) {
	patterns := make([]pattern, 0, len(vcs))
	for _, name := range vcs {
		patterns = append(patterns, pattern{folders: true, parts: []string{deep, name}})
	}
	own, err := parse(list)
	if err != nil {
		return nil, err
	}
	return filtered{FS: files, patterns: append(patterns, own...)}, nil
}

// Check tells what is wrong with a list, as FS does.
func Check(list string) error {
	_, err := parse(list)
	return err
}

// filtered leaves out what its patterns match when folders are listed, and does not open it either.
type filtered struct {
	fs.FS
	patterns []pattern
}

// LeftOut names what is missing from the files, but for what the patterns leave out on purpose.
func (f filtered) LeftOut() []string {
	return slices.DeleteFunc(links.Of(f.FS), func(name string) bool { return f.without(name, false) || f.without(name, true) })
}

// match tells whether the last pattern that is about a path leaves it out.
func (f filtered) match(parts []string, isFolder bool) bool {
	for _, p := range slices.Backward(f.patterns) {
		if p.matches(parts, isFolder) {
			return !p.back
		}
	}
	return false
}

// ReadDir implements fs.ReadDirFS.
func (f filtered) ReadDir(name string) ([]fs.DirEntry, error) {
	if name != "." && f.without(name, true) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	entries, err := fs.ReadDir(f.FS, name)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(entries, func(entry fs.DirEntry) bool {
		return f.match(parts(path.Join(name, entry.Name())), entry.IsDir())
	}), nil
}

// Open implements fs.FS.
func (f filtered) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if err != nil || name == "." {
		return f.folder(name, file), err
	}
	info, err := file.Stat()
	if err == nil && f.without(name, info.IsDir()) {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if !info.IsDir() {
		return file, nil
	}
	return f.folder(name, file), nil
}

// folder makes an open folder list what ReadDir lists.
func (f filtered) folder(name string, file fs.File) fs.File {
	if file == nil {
		return nil
	}
	return &folder{File: file, list: func() ([]fs.DirEntry, error) { return f.ReadDir(name) }}
}

// without tells whether a path, or a folder above it, is left out.
func (f filtered) without(name string, isFolder bool) bool {
	all := parts(name)
	for i := 1; i < len(all); i++ {
		if f.match(all[:i], true) {
			return true
		}
	}
	return f.match(all, isFolder)
}

func parts(name string) []string { return strings.Split(name, "/") }

// folder is an open folder.
type folder struct {
	fs.File
	list    func() ([]fs.DirEntry, error)
	entries []fs.DirEntry
	read    bool
}

// ReadDir implements fs.ReadDirFile.
func (d *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.read {
		entries, err := d.list()
		if err != nil {
			return nil, err
		}
		d.entries, d.read = entries, true
	}
	if n <= 0 {
		rest := d.entries
		d.entries = nil
		return rest, nil
	}
	if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	next := d.entries[:n]
	d.entries = d.entries[n:]
	return next, nil
}
