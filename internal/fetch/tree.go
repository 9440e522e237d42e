// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/satchel-dev/satchel/internal/fetch/links"
)

// Tree is a folder that is being filled with content from outside. It holds regular files (mode 0600) and folders
// (mode 0700), nothing else; nothing is written outside it, and all that is written counts against one budget.
//
// Links: a symbolic or hard link, in an archive, an image layer or a Git tree, is skipped. It is neither created nor
// followed, and its target is never looked at; what had its name before (an earlier entry, a lower layer) is gone.
// Real bundles and repositories hold links (LICENSE, docs, /bin), so refusing them would refuse the bundle.
//
// Duplicates: a later file replaces an earlier one. A file never replaces a folder and a folder never a file, except
// where an image layer covers a lower one.
//
// A Tree is not safe for concurrent use.
type Tree struct {
	*folder
	prefix string // where this tree lies in the folder; "." for all of it
	only   string // what is unpacked of image layers, a path of the folder; "" for everything
}

// folder is what a tree and its sub-trees share.
type folder struct {
	disk   disk
	limits Limits
	left   budget
	kinds  map[string]kind // of all paths that exist
	links  links.Set       // see LeftOut
	buffer []byte
}

type kind byte

const (
	absent kind = iota
	regular
	directory
)

// NewTree opens an existing, empty folder as a tree.
func NewTree(dir string, l Limits) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of a tree: %w", err)
	}
	names, err := fs.ReadDir(root.FS(), ".")
	if err == nil && len(names) > 0 {
		err = errors.New("it is not empty")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the folder of a tree: %w", err), root.Close())
	}
	return treeOn(rootDisk{root}, l), nil
}

// NewPackedTree returns an empty tree that keeps its files in one file, which is open for reading and writing apart: see
// package packed. Closing the tree closes the former.
func NewPackedTree(write, read *os.File, l Limits) *Tree {
	return treeOn(newPackedDisk(write, read), l)
}

func treeOn(on disk, l Limits) *Tree {
	return &Tree{prefix: ".", folder: &folder{
		disk:   on,
		limits: l,
		left:   newBudget(l),
		kinds:  map[string]kind{".": directory},
		links:  links.Set{},
		buffer: make([]byte, 64<<10),
	}}
}

// Sub returns the part of the tree below destination, a relative path; "" and "." are the tree itself. The folder is
// created. Both trees share budget and life: closing the outer one is enough.
func (t *Tree) Sub(destination string) (*Tree, error) {
	if destination == "" {
		destination = "."
	}
	where, err := t.locate(destination)
	if err == nil {
		err = t.makeDir(where)
	}
	if err != nil {
		return nil, Describe(err, "destination %s", Quote(destination))
	}
	return &Tree{folder: t.folder, prefix: where}, nil
}

// Only returns the same tree, which unpacks one file or folder of image layers. What else is in them is read and dropped: it
// counts against the limits of a download and of a file, and not against those of what is unpacked.
func (t *Tree) Only(name string) (*Tree, error) {
	where, err := t.locate(name)
	if err != nil {
		return nil, Describe(err, "folder %s", Quote(name))
	}
	return &Tree{folder: t.folder, prefix: t.prefix, only: where}, nil
}

// WriteFile stores content under name, a relative path, and replaces an earlier file.
func (t *Tree) WriteFile(name string, content io.Reader) error {
	where, err := t.locate(name)
	if err == nil {
		err = t.put(where, content)
	}
	return Describe(err, "file %s", Quote(name))
}

// Mkdir creates a folder with its parents. It counts as an entry even when it exists.
func (t *Tree) Mkdir(name string) error {
	where, err := t.locate(name)
	if err == nil {
		err = t.makeDirEntry(where)
	}
	return Describe(err, "folder %s", Quote(name))
}

// SkipLink records a link that is not stored; see Tree for the rule.
func (t *Tree) SkipLink(name string) error {
	where, err := t.locate(name)
	if err == nil {
		err = t.skipLink(where)
	}
	return Describe(err, "link %s", Quote(name))
}

// Scratch creates a folder for intermediate files inside the folder of the tree, so that the cleanup after a crash
// finds everything in one place. The files of the tree do not include it once remove was called.
func (t *Tree) Scratch() (dir string, remove func() error, err error) {
	root, ok := t.disk.(rootDisk)
	if !ok {
		return "", nil, errors.New("a packed tree has no folder for intermediate files")
	}
	dir, err = os.MkdirTemp(root.Name(), ".scratch-")
	if err != nil {
		return "", nil, fmt.Errorf("creating a folder for intermediate files: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

// FS returns the files of the tree, read only.
func (t *Tree) FS() fs.FS {
	if t.prefix == "." {
		return treeFS{t.disk.FS(), t}
	}
	sub, err := fs.Sub(t.disk.FS(), t.prefix)
	if err != nil {
		return brokenFS{err}
	}
	return treeFS{sub, t}
}

// Metered returns r with its bytes counted against the tree's download budget; the read that goes beyond it fails
// with LimitExceeded.
func (t *Tree) Metered(r io.Reader) io.Reader {
	return &meter{reader: r, left: &t.left.download, limit: t.limits.DownloadBytes, what: "download"}
}

// Limits returns the limits that the tree enforces.
func (t *Tree) Limits() Limits { return t.limits }

// Close releases the folder; its files stay.
func (t *Tree) Close() error { return t.disk.Close() }

// locate checks a name from outside and returns its path in the folder.
func (t *Tree) locate(name string) (string, error) {
	clean, err := cleanName(name)
	if err != nil {
		return "", &Error{Reason: InvalidContent, Err: err}
	}
	where := path.Join(t.prefix, clean)
	if len(where) > t.limits.PathBytes {
		return "", Errorf(LimitExceeded, "its path has more than %d bytes", t.limits.PathBytes)
	}
	if strings.Count(where, "/") >= t.limits.Depth {
		return "", Errorf(LimitExceeded, "its path has more than %d parts", t.limits.Depth)
	}
	return where, nil
}

// makeDir creates a folder with its parents; each one that is new counts as an entry.
func (t *Tree) makeDir(where string) error {
	switch t.kinds[where] {
	case directory:
		return nil
	case regular:
		return Errorf(InvalidContent, "a file is already where the folder %s should be", Quote(where))
	}
	if err := t.makeDir(path.Dir(where)); err != nil {
		return err
	}
	if err := t.left.entry(t.limits); err != nil {
		return err
	}
	if err := t.disk.mkdir(where); err != nil {
		return fmt.Errorf("creating a folder: %w", err)
	}
	t.kinds[where] = directory
	return nil
}

// put writes one file below existing or new folders.
func (t *Tree) put(where string, content io.Reader) (err error) {
	if t.kinds[where] == directory {
		return Errorf(InvalidContent, "a folder has the same name")
	}
	if err := t.makeDir(path.Dir(where)); err != nil {
		return err
	}
	if err := t.left.entry(t.limits); err != nil {
		return err
	}
	file, err := t.disk.create(where)
	if err != nil {
		return fmt.Errorf("creating a file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	t.kinds[where] = regular
	return t.copy(file, content)
}

// copy moves content into an open file within the budget.
func (t *Tree) copy(file io.Writer, content io.Reader) error {
	most := min(t.limits.FileBytes, t.left.extracted)
	// The struct hides File.ReadFrom, which would allocate a buffer of its own for each file.
	n, err := io.CopyBuffer(struct{ io.Writer }{file}, io.LimitReader(content, most+1), t.buffer)
	t.left.extracted -= min(n, most)
	if err != nil {
		return fmt.Errorf("writing a file: %w", err)
	}
	if n > most {
		return t.tooLarge(n)
	}
	return nil
}

// tooLarge tells which limit a file of at least n bytes exceeds.
func (t *Tree) tooLarge(n int64) error {
	if n > t.limits.FileBytes {
		return Errorf(LimitExceeded, "it has more than %d bytes, the limit for one file", t.limits.FileBytes)
	}
	return Errorf(LimitExceeded, "the source has more than %d bytes unpacked", t.limits.ExtractedBytes)
}

// remove takes away a file, or a folder with all that is below it.
func (t *Tree) remove(where string) error {
	if t.kinds[where] == absent {
		return nil
	}
	if t.kinds[where] == directory {
		below, err := t.children(where)
		if err != nil {
			return err
		}
		for _, child := range below {
			if err := t.remove(child); err != nil {
				return err
			}
		}
	}
	if err := t.disk.remove(where); err != nil {
		return fmt.Errorf("removing %s: %w", Quote(where), err)
	}
	delete(t.kinds, where)
	return nil
}

// children returns the paths right below a folder.
func (t *Tree) children(where string) ([]string, error) {
	names, err := t.disk.list(where)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", Quote(where), err)
	}
	paths := make([]string, 0, len(names))
	for _, name := range names {
		paths = append(paths, path.Join(where, name))
	}
	return paths, nil
}

// Clear empties the tree, so that nothing of a refused archive, or of a place that failed, stays. The limits count what was removed.
func (t *Tree) Clear() error {
	below, err := t.children(t.prefix)
	for _, child := range below {
		err = errors.Join(err, t.remove(child))
	}
	return err
}

// brokenFS reports at the first use why there are no files.
type brokenFS struct{ err error }

func (b brokenFS) Open(string) (fs.File, error) { return nil, b.err }
