// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"path"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/pack"
)

// Modes of tree entries, as git writes them; some tools put zeros before them.
const (
	modeFolder    = "40000"
	modeLink      = "120000"
	modeSubmodule = "160000"
)

// fileModes are those of regular files; the third one is from git's first days.
var fileModes = map[string]bool{"100644": true, "100755": true, "100664": true}

// entry is one name in a tree object.
type entry struct {
	mode string
	name string
	hash plumbing.Hash
}

// parseTree reads a tree object: "<mode> <name>\0<20 bytes of hash>", again and again.
func parseTree(data []byte) ([]entry, error) {
	var entries []entry
	for len(data) > 0 {
		head, rest, found := bytes.Cut(data, []byte{0})
		mode, name, spaced := strings.Cut(string(head), " ")
		if !found || !spaced || len(rest) < len(plumbing.ZeroHash) {
			return nil, fetch.Errorf(fetch.InvalidContent, "a tree object is malformed")
		}
		entries = append(entries, entry{strings.TrimLeft(mode, "0"), name, plumbing.Hash(rest[:len(plumbing.ZeroHash)])})
		data = rest[len(plumbing.ZeroHash):]
	}
	return entries, nil
}

// parseCommit returns the tree of a commit object.
func parseCommit(data []byte) (plumbing.Hash, error) {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	text, found := strings.CutPrefix(string(line), "tree ")
	if !found || !commitText.MatchString(text) {
		return plumbing.ZeroHash, fetch.Errorf(fetch.InvalidContent, "the commit object is malformed")
	}
	return plumbing.NewHash(text), nil
}

// parseDirectory returns the canonical form of the part of a repository to take; "" is all of it.
func parseDirectory(text string) (string, error) {
	clean := path.Clean(strings.TrimPrefix(text, "./"))
	if text == "" || clean == "." {
		return "", nil
	}
	if clean != strings.TrimSuffix(strings.TrimPrefix(text, "./"), "/") {
		return "", fetch.Errorf(fetch.Refused, "the directory %s is not a plain path inside the repository", fetch.Quote(text))
	}
	for part := range strings.SplitSeq(clean, "/") {
		if part == "" || part == ".." || isDotGit(part) {
			return "", fetch.Errorf(fetch.Refused, "the directory %s leads out of the repository", fetch.Quote(text))
		}
	}
	return clean, nil
}

// dotGit matches the spellings of ".git" that some file system takes for it: upper case, trailing dots and spaces,
// streams, and the short form of old Windows.
var dotGit = regexp.MustCompile(`(?i)^(\.git|git~[0-9]+)[. ]*(:.*)?$`)

func isDotGit(name string) bool { return dotGit.MatchString(name) }

// rootOf returns the root folder of a commit.
func rootOf(p *pack.File, commit plumbing.Hash) (plumbing.Hash, error) {
	data, err := p.Get(commit, plumbing.CommitObject)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return parseCommit(data)
}

// enter follows a path from one tree object to another.
func enter(p *pack.File, root plumbing.Hash, directory string) (plumbing.Hash, error) {
	if directory == "" {
		return root, nil
	}
	for part := range strings.SplitSeq(directory, "/") {
		data, err := p.Get(root, plumbing.TreeObject)
		if err != nil {
			return root, err
		}
		entries, err := parseTree(data)
		if err != nil {
			return root, err
		}
		if root, err = lookUp(entries, part); err != nil {
			return root, fetch.Describe(err, "directory %s", fetch.Quote(directory))
		}
	}
	return root, nil
}

func lookUp(entries []entry, name string) (plumbing.Hash, error) {
	for _, e := range entries {
		switch {
		case e.name != name:
		case e.mode != modeFolder:
			return plumbing.ZeroHash, fetch.Errorf(fetch.InvalidContent, "%s is not a folder in this commit", fetch.Quote(name))
		default:
			return e.hash, nil
		}
	}
	return plumbing.ZeroHash, fetch.Errorf(fetch.NotFound, "%s does not exist in this commit", fetch.Quote(name))
}

// walker writes tree objects into a tree.
type walker struct {
	ctx  context.Context
	pack *pack.File
	tree *fetch.Tree
	// modules notes the submodules; nil skips them.
	modules *modules
	// listed is how many entries were read, of submodules as well.
	listed *int
	most   int
}

// write writes one tree object, after looking through all of it: what is refused for its names or its number of entries
// leaves nothing behind.
func (w *walker) write(root plumbing.Hash) error {
	if err := w.survey(root, 1); err != nil {
		return err
	}
	return w.folder(root, "")
}

// survey checks the names in a folder and below it, and counts them. Each level counts before what is below it is looked
// at, which bounds the recursion.
func (w *walker) survey(hash plumbing.Hash, level int) error {
	entries, err := w.list(hash)
	if err != nil {
		return err
	}
	if *w.listed += len(entries); *w.listed > w.most {
		return fetch.Errorf(fetch.LimitExceeded, "the commit has more than %d files, folders and links", w.most)
	}
	if deepest := w.tree.Limits().Depth; level > deepest && len(entries) > 0 {
		return fetch.Errorf(fetch.LimitExceeded, "the commit has folders in folders more than %d deep", deepest)
	}
	for _, e := range entries {
		if err := checkEntry(e.name); err != nil {
			return err
		}
		if e.mode == modeFolder {
			if err := w.survey(e.hash, level+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// list reads one tree object.
func (w *walker) list(hash plumbing.Hash) ([]entry, error) {
	if w.ctx.Err() != nil {
		return nil, fetch.NetworkError(context.Cause(w.ctx))
	}
	data, err := w.pack.Get(hash, plumbing.TreeObject)
	if err != nil {
		return nil, err
	}
	return parseTree(data)
}

// folder writes a tree object that was surveyed.
func (w *walker) folder(hash plumbing.Hash, prefix string) error {
	entries, err := w.list(hash)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if w.ctx.Err() != nil {
			return fetch.NetworkError(context.Cause(w.ctx))
		}
		if err := w.entry(e, path.Join(prefix, e.name)); err != nil {
			return err
		}
	}
	return nil
}

func checkEntry(name string) error {
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") || isDotGit(name) {
		return fetch.Errorf(fetch.InvalidContent, "the commit has an entry named %s, which is refused", fetch.Quote(name))
	}
	return nil
}

func (w *walker) entry(e entry, name string) error {
	switch {
	case e.mode == modeFolder:
		if err := w.tree.Mkdir(name); err != nil {
			return err
		}
		return w.folder(e.hash, name)
	case e.mode == modeSubmodule && w.modules != nil:
		if err := w.tree.Mkdir(name); err != nil {
			return err
		}
		return w.modules.add(e, name)
	case e.mode == modeLink, e.mode == modeSubmodule:
		return w.tree.SkipLink(name)
	case fileModes[e.mode]:
		return w.file(e.hash, name)
	}
	return fetch.Errorf(fetch.InvalidContent, "file %s: the mode %s is not supported", fetch.Quote(name), fetch.Quote(e.mode))
}

// file streams one blob.
func (w *walker) file(hash plumbing.Hash, name string) error {
	blob, err := w.pack.Find(hash, plumbing.BlobObject)
	if err != nil {
		return err
	}
	content, err := w.pack.Open(blob)
	if err != nil {
		return err
	}
	return errors.Join(pack.Damaged(w.tree.WriteFile(name, content)), content.Close())
}
