// SPDX-License-Identifier: Apache-2.0

// Package packed keeps the files of a bundle one after the other in a single open file, and an index of them beside it. A
// process that may open no path reads the bundle from the descriptor, at the offsets of the index.
package packed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Entry is one file, folder or link.
type Entry struct {
	// Name is the path from the top of the bundle, as in fs.FS.
	Name string
	// Mode is the type of the entry: 0 for a regular file.
	Mode fs.FileMode `json:",omitempty"`
	// Offset and Size of the content of a regular file.
	Offset int64 `json:",omitempty"`
	Size   int64 `json:",omitempty"`
}

// Limits bound what is packed.
type Limits struct {
	// Bytes of all files, and of one of them.
	Bytes, FileBytes int64
	// Entries are files, folders and links.
	Entries int
}

// Temporary creates the file that a bundle is packed into, open once for writing and once for reading only: who reads what
// it holds cannot change it. It has no name, or one that is removed at once where the file system needs one, so that nothing
// of it stays, however the process ends.
func Temporary(dir, prefix string) (write, read *os.File, err error) {
	if dir == "" {
		dir = os.TempDir()
	}
	if write, read, err = nameless(dir); err == nil {
		return write, read, nil
	}
	if write, err = os.CreateTemp(dir, prefix); err != nil {
		return nil, nil, fmt.Errorf("creating a temporary file: %w", err)
	}
	read, err = os.Open(write.Name())
	if err = errors.Join(err, os.Remove(write.Name())); err != nil {
		return nil, nil, fmt.Errorf("opening a temporary file: %w", errors.Join(err, write.Close(), read.Close()))
	}
	return write, read, nil
}

// Pack copies the files of a bundle to the end of a file, and returns their index. Links are listed and never followed;
// folders named .git are left out.
func Pack(ctx context.Context, files fs.FS, to io.Writer, limits Limits) ([]Entry, error) {
	p := &packer{ctx: ctx, files: files, to: to, limits: limits, buffer: make([]byte, 64<<10)}
	if err := fs.WalkDir(files, ".", p.add); err != nil {
		return nil, err
	}
	return p.index, nil
}

type packer struct {
	ctx    context.Context
	files  fs.FS
	to     io.Writer
	limits Limits
	index  []Entry
	at     int64
	buffer []byte
}

func (p *packer) add(name string, entry fs.DirEntry, err error) error {
	if err != nil {
		return fmt.Errorf("reading the bundle: %w", err)
	}
	if p.ctx.Err() != nil {
		return fmt.Errorf("reading the bundle: %w", context.Cause(p.ctx))
	}
	if entry.IsDir() && entry.Name() == ".git" {
		return fs.SkipDir
	}
	if name == "." {
		return nil
	}
	if len(p.index) >= p.limits.Entries {
		return fmt.Errorf("there are more than %d files and folders: give the folder that holds the bundle", p.limits.Entries)
	}
	packed := Entry{Name: name, Mode: entry.Type(), Offset: p.at}
	if packed.Mode.IsRegular() {
		if packed.Size, err = p.copy(name); err != nil {
			return err
		}
	}
	p.at += packed.Size
	p.index = append(p.index, packed)
	return nil
}

func (p *packer) copy(name string) (int64, error) {
	file, err := p.files.Open(name)
	if err != nil {
		return 0, fmt.Errorf("reading the bundle: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read from
	most := min(p.limits.FileBytes, p.limits.Bytes-p.at)
	n, err := io.CopyBuffer(struct{ io.Writer }{p.to}, io.LimitReader(file, most+1), p.buffer)
	switch {
	case err != nil:
		return 0, fmt.Errorf("reading the bundle: %w", err)
	case n <= most:
		return n, nil
	case n > p.limits.FileBytes:
		return 0, fmt.Errorf("the file %s has more than %d bytes", name, p.limits.FileBytes)
	}
	return 0, fmt.Errorf("the files have more than %d bytes: give the folder that holds the bundle", p.limits.Bytes)
}

// FS is a packed bundle, read only. It is safe for concurrent use.
type FS struct {
	content io.ReaderAt
	entries map[string]*node
}

type node struct {
	entry    Entry
	children []*node // of a folder, sorted by name
}

// New returns the files that an index lists in content. Folders that the index leaves out are those above its entries.
func New(content io.ReaderAt, index []Entry) (*FS, error) {
	f := &FS{content: content, entries: make(map[string]*node, len(index)+1)}
	f.entries["."] = &node{entry: Entry{Name: ".", Mode: fs.ModeDir}}
	for _, entry := range index {
		if !fs.ValidPath(entry.Name) || entry.Name == "." || entry.Offset < 0 || entry.Size < 0 {
			return nil, fmt.Errorf("the index of the files is damaged at %q", entry.Name)
		}
		if err := f.insert(entry); err != nil {
			return nil, err
		}
	}
	for _, n := range f.entries {
		slices.SortFunc(n.children, func(a, b *node) int { return strings.Compare(a.entry.Name, b.entry.Name) })
	}
	return f, nil
}

func (f *FS) insert(entry Entry) error {
	if known, double := f.entries[entry.Name]; double {
		if known.entry.Mode.IsDir() && entry.Mode.IsDir() {
			return nil
		}
		return fmt.Errorf("the index of the files lists %q twice", entry.Name)
	}
	above := path.Dir(entry.Name)
	if _, there := f.entries[above]; !there {
		if err := f.insert(Entry{Name: above, Mode: fs.ModeDir}); err != nil {
			return err
		}
	}
	if !f.entries[above].entry.Mode.IsDir() {
		return fmt.Errorf("the index of the files has %q below a file", entry.Name)
	}
	added := &node{entry: entry}
	f.entries[entry.Name] = added
	f.entries[above].children = append(f.entries[above].children, added)
	return nil
}

// find returns an entry by its path, without following links.
func (f *FS) find(operation, name string) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: operation, Path: name, Err: fs.ErrInvalid}
	}
	found, there := f.entries[name]
	if !there {
		return nil, &fs.PathError{Op: operation, Path: name, Err: fs.ErrNotExist}
	}
	return found, nil
}

// target is find for what a link would be followed for: what it leads to does not exist here.
func (f *FS) target(operation, name string) (*node, error) {
	found, err := f.find(operation, name)
	if err == nil && found.entry.Mode&fs.ModeSymlink != 0 {
		return nil, &fs.PathError{Op: operation, Path: name, Err: fs.ErrNotExist}
	}
	return found, err
}

// Open implements fs.FS.
func (f *FS) Open(name string) (fs.File, error) {
	found, err := f.target("open", name)
	switch {
	case err != nil:
		return nil, err
	case found.entry.Mode.IsDir():
		return &folder{node: found}, nil
	case !found.entry.Mode.IsRegular():
		return &file{node: found, SectionReader: io.NewSectionReader(f.content, 0, 0)}, nil
	}
	return &file{node: found, SectionReader: io.NewSectionReader(f.content, found.entry.Offset, found.entry.Size)}, nil
}

// ReadFile implements fs.ReadFileFS.
func (f *FS) ReadFile(name string) ([]byte, error) {
	found, err := f.target("open", name)
	if err != nil {
		return nil, err
	}
	if !found.entry.Mode.IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is no regular file")}
	}
	data := make([]byte, found.entry.Size)
	if _, err := io.ReadFull(io.NewSectionReader(f.content, found.entry.Offset, found.entry.Size), data); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}

// ReadDir implements fs.ReadDirFS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	found, err := f.target("readdir", name)
	if err != nil {
		return nil, err
	}
	if !found.entry.Mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("is no folder")}
	}
	entries := make([]fs.DirEntry, 0, len(found.children))
	for _, child := range found.children {
		entries = append(entries, fs.FileInfoToDirEntry(child.info()))
	}
	return entries, nil
}

// Stat implements fs.StatFS.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	found, err := f.target("stat", name)
	if err != nil {
		return nil, err
	}
	return found.info(), nil
}

// Lstat implements fs.ReadLinkFS.
func (f *FS) Lstat(name string) (fs.FileInfo, error) {
	found, err := f.find("lstat", name)
	if err != nil {
		return nil, err
	}
	return found.info(), nil
}

// ReadLink implements fs.ReadLinkFS: where links lead is not kept.
func (f *FS) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
}
