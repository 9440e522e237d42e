// SPDX-License-Identifier: Apache-2.0

package git

import (
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/versions"
)

const (
	anyPrefix    = "refs/"
	branchPrefix = "refs/heads/"
	tagPrefix    = "refs/tags/"
	digestPrefix = "sha1:"
	// maxReference bounds the name of a branch or tag.
	maxReference = 300
	// maxVersion bounds the name of a tag that is compared with a range.
	maxVersion = 256
)

// wellFormed tells whether a full reference name has the syntax of git-check-ref-format(1).
func wellFormed(name string) bool {
	if !strings.Contains(name, "/") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") ||
		strings.Contains(name, "@{") || strings.ContainsAny(name, " ~^:?*[\\\x7f") ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return false
	}
	for component := range strings.SplitSeq(name, "/") {
		if component == "" || component[0] == '.' || strings.HasSuffix(component, ".lock") {
			return false
		}
	}
	return true
}

// checkReference refuses what is not the name of a branch or tag that people use.
func checkReference(full string) error {
	short := shortName(full)
	if len(full) > maxReference || !wellFormed(full) || strings.HasPrefix(short, "-") {
		return fetch.Errorf(fetch.Refused, "%s is not a valid reference name (git check-ref-format)", fetch.Quote(short))
	}
	return nil
}

// checkName refuses what is not a full reference name.
func checkName(full string) error {
	if !strings.HasPrefix(full, anyPrefix) {
		return fetch.Errorf(fetch.Refused, "the reference name %s is not a full one: write for example %smain", fetch.Quote(full), branchPrefix)
	}
	return checkReference(full)
}

func shortName(full string) string {
	return strings.TrimPrefix(strings.TrimPrefix(full, branchPrefix), tagPrefix)
}

// commitText is a full SHA-1. Repositories with SHA-256 are not supported by go-git.
var commitText = regexp.MustCompile(`^[0-9a-f]{40}$`)

func checkCommit(text string) error {
	if len(text) == 64 {
		return fetch.Errorf(fetch.Refused, "repositories with SHA-256 hashes are not supported yet")
	}
	if !commitText.MatchString(text) {
		return fetch.Errorf(fetch.Refused, "the commit %s is not a full hash of 40 lower-case hexadecimal digits",
			fetch.Quote(text))
	}
	return nil
}

func digestOf(commit plumbing.Hash) string { return digestPrefix + commit.String() }

// commitOf reads what digestOf wrote.
func commitOf(digest string) (plumbing.Hash, error) {
	text, found := strings.CutPrefix(digest, digestPrefix)
	if !found || !commitText.MatchString(text) {
		return plumbing.ZeroHash, fetch.Errorf(fetch.Refused, "%s is not the digest of a commit", fetch.Quote(digest))
	}
	return plumbing.NewHash(text), nil
}

// choose returns the name and the commit of what is wanted among the references that a server has.
func (w wanted) choose(refs *references) (string, plumbing.Hash, error) {
	switch {
	case w.branch != "":
		commit, found := refs.named[branchPrefix+w.branch]
		if !found {
			return "", commit, fetch.Errorf(fetch.NotFound, "the branch %s does not exist", fetch.Quote(w.branch))
		}
		return w.branch, commit, nil
	case w.tag != "":
		commit, found := refs.commit(tagPrefix + w.tag)
		if !found {
			return "", commit, fetch.Errorf(fetch.NotFound, "the tag %s does not exist", fetch.Quote(w.tag))
		}
		return w.tag, commit, nil
	case w.name != "":
		commit, found := refs.commit(w.name)
		if !found {
			return "", commit, fetch.Errorf(fetch.NotFound, "the reference %s does not exist", fetch.Quote(w.name))
		}
		return w.name, commit, nil
	case !w.semver.Empty():
		return w.newest(refs)
	}
	return head(refs)
}

// selection is what choose looks at.
func (w wanted) selection() selection {
	switch {
	case w.branch != "":
		return selectName(branchPrefix + w.branch)
	case w.tag != "":
		return selectName(tagPrefix + w.tag)
	case w.name != "":
		return selectName(w.name)
	case !w.semver.Empty():
		best := &newest{Newest: versions.Newest{Range: w.semver}}
		return selection{prefixes: []string{tagPrefix}, needs: best.look}
	}
	return selectName(headName)
}

// newest is the best of the tags seen so far.
type newest struct {
	versions.Newest
	last   string // the full name of the tag looked at last
	better bool   // it was better than those before it
}

// look tells whether a reference is a tag that is the best so far. Tags that are no versions, or have no valid name, do not
// count. What an annotated tag points at is listed after it, under the same name.
func (n *newest) look(full string, _ plumbing.Hash) (bool, error) {
	name, isTag := strings.CutPrefix(full, tagPrefix)
	switch {
	case full == n.last:
		return n.better, nil
	case !isTag || len(name) > maxVersion || checkReference(full) != nil:
		return false, nil
	}
	version, err := semver.NewVersion(name)
	n.last, n.better = full, err == nil && n.Look(name, version)
	return n.better, n.Bounded()
}

// head returns the branch that HEAD stands for, "HEAD" when the server does not say which that is.
func head(refs *references) (string, plumbing.Hash, error) {
	commit, found := refs.named[headName]
	if !found {
		return "", commit, fetch.Errorf(fetch.NotFound, "the repository has no default branch: name a branch")
	}
	if branch, isBranch := strings.CutPrefix(refs.head, branchPrefix); isBranch && checkReference(refs.head) == nil {
		return branch, commit, nil
	}
	return headName, commit, nil
}

// newest returns the tag with the highest version in the range.
func (w wanted) newest(refs *references) (string, plumbing.Hash, error) {
	best := &newest{Newest: versions.Newest{Range: w.semver}}
	for full := range refs.named {
		if _, err := best.look(full, plumbing.ZeroHash); err != nil {
			return "", plumbing.ZeroHash, err
		}
	}
	if best.Version == nil {
		return "", plumbing.ZeroHash, fetch.Errorf(fetch.NotFound, "no tag is in the range %s", fetch.Quote(w.semver.String()))
	}
	commit, _ := refs.commit(tagPrefix + best.Name)
	return best.Name, commit, nil
}
