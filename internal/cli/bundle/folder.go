// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// Folder is a local folder as the controllers would see it after fetching it: without symbolic links and files outside of it.
type Folder struct {
	root    *os.Root
	skipped map[string]bool // links that were met
}

// OpenFolder opens a folder; close it.
func OpenFolder(name string) (*Folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("opening the folder %s: %w", name, kit.WithoutPath(err))
	}
	return &Folder{root: root, skipped: map[string]bool{}}, nil
}

// Open implements fs.FS.
func (f *Folder) Open(name string) (fs.File, error) {
	if err := f.check("open", name); err != nil {
		return nil, err
	}
	return f.root.FS().Open(name)
}

// ReadDir implements fs.ReadDirFS.
func (f *Folder) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.check("readdir", name); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(f.root.FS(), name)
	return slices.DeleteFunc(entries, func(entry fs.DirEntry) bool {
		link := entry.Type()&fs.ModeSymlink != 0
		if link {
			f.skipped[path.Join(name, entry.Name())] = true
		}
		return link
	}), err
}

// check fails for a path that leads over a link.
func (f *Folder) check(operation, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: operation, Path: name, Err: fs.ErrInvalid}
	}
	part := ""
	for element := range strings.SplitSeq(name, "/") {
		part = path.Join(part, element)
		info, err := f.root.Lstat(part)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			f.skipped[part] = true
			return &fs.PathError{Op: operation, Path: name, Err: fs.ErrNotExist}
		}
	}
	return nil
}

// Links returns the links that were met, sorted.
func (f *Folder) Links() []string {
	names := make([]string, 0, len(f.skipped))
	for name := range f.skipped {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// LeftOut is Links, for package artifact.
func (f *Folder) LeftOut() []string { return f.Links() }

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }
