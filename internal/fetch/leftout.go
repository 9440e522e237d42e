// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"io/fs"

	"github.com/satchel-dev/satchel/internal/fetch/links"
)

// leaveOutListed keeps what the header of an archive names.
func (t *Tree) leaveOutListed(records map[string]string) {
	for _, name := range links.Recorded(records) {
		if where, err := t.locate(name); err == nil {
			t.links.Add(where)
		}
	}
}

// LeftOut names links of the tree that were skipped, sorted: any may have been a file, or a folder, of a bundle. None has a file of the
// same name, as from another layer. The last name is links.Everything where there are too many.
func (t *Tree) LeftOut() []string {
	return t.links.Names(t.prefix, func(where string) bool { return t.kinds[where] != absent })
}

// treeFS are the files of a tree, which know what was left out of them.
type treeFS struct {
	fs.FS
	tree *Tree
}

// LeftOut is Tree.LeftOut: see links.Of.
func (f treeFS) LeftOut() []string { return f.tree.LeftOut() }

// ReadDir implements fs.ReadDirFS.
func (f treeFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(f.FS, name) }

// ReadFile implements fs.ReadFileFS.
func (f treeFS) ReadFile(name string) ([]byte, error) { return fs.ReadFile(f.FS, name) }

// Stat implements fs.StatFS.
func (f treeFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(f.FS, name) }

// Lstat implements fs.ReadLinkFS.
func (f treeFS) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(f.FS, name) }

// ReadLink implements fs.ReadLinkFS.
func (f treeFS) ReadLink(name string) (string, error) { return fs.ReadLink(f.FS, name) }
