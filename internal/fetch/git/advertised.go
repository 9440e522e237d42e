// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/protocol"
)

const (
	headName = "HEAD"
	// peeledSuffix marks the line that tells the commit of the tag in the line before it.
	peeledSuffix = "^{}"
	// noReference stands where the first reference of an empty repository would be.
	noReference = "capabilities^{}"
)

// capabilities are what a server says it can do: name and, where there is one, value.
type capabilities map[string]string

func (c capabilities) has(name string) bool {
	_, found := c[name]
	return found
}

// add takes in "name" or "name=value".
func (c capabilities) add(text string) {
	name, value, _ := strings.Cut(text, "=")
	c[name] = value
}

// references are those of a server's references that a conversation needs.
type references struct {
	named  map[string]plumbing.Hash // by full name, and HEAD
	peeled map[string]plumbing.Hash // what an annotated tag leads to
	head   string                   // the full name of what HEAD stands for, "" when the server does not say
}

func newReferences() *references {
	return &references{named: map[string]plumbing.Hash{}, peeled: map[string]plumbing.Hash{}}
}

// commit returns what a reference leads to, also when an annotated tag stands between.
func (r *references) commit(full string) (plumbing.Hash, bool) {
	if commit, found := r.peeled[full]; found {
		return commit, true
	}
	commit, found := r.named[full]
	return commit, found
}

// leading returns what to ask for to get a commit: the commit, or the tag that leads to it.
func (r *references) leading(commit plumbing.Hash) (plumbing.Hash, bool) {
	for _, hash := range r.named {
		if hash == commit {
			return commit, true
		}
	}
	for name, hash := range r.peeled {
		if tag, found := r.named[name]; found && hash == commit {
			return tag, true
		}
	}
	return commit, false
}

// selection says which references a conversation needs.
type selection struct {
	// needs tells whether a reference is needed, by its full name and what it points at. It may keep what it saw, and serves
	// one list; an error ends that.
	needs func(full string, hash plumbing.Hash) (bool, error)
	// name is the only one that is needed, "" when there may be several.
	name string
	// prefixes are what the names of those that are needed begin with.
	prefixes []string
}

// selectName is for one reference.
func selectName(full string) selection {
	return selection{
		needs: func(name string, _ plumbing.Hash) (bool, error) { return name == full, nil }, name: full, prefixes: []string{full},
	}
}

// selectCommit is for asking for a commit, which needs a reference that leads to it.
func selectCommit(commit plumbing.Hash) selection {
	return selection{needs: func(_ string, hash plumbing.Hash) (bool, error) { return hash == commit, nil }}
}

// listing reads a server's list of references (gitprotocol-pack(5)) and keeps those that are needed. It counts them while
// they come.
type listing struct {
	selection
	most  int
	found *references
	long  func() bool // tells whether the list is longer than the limit

	count        int
	previousName string // the last reference that was left out
	previousHash plumbing.Hash
	complete     bool // all that is needed was seen
}

// errLong ends reading a list that is too long.
var errLong = errors.New("the list of references is long")

// read reads the list from its first line to its end.
func (l *listing) read(first []byte, lines *protocol.Reader) (capabilities, error) {
	line, list, _ := bytes.Cut(first, []byte{0})
	able := capabilities{}
	for word := range strings.FieldsSeq(string(list)) {
		able.add(word)
		if target, isHead := strings.CutPrefix(word, "symref=HEAD:"); isHead {
			l.found.head = target
		}
	}
	if strings.HasSuffix(string(line), " "+noReference) {
		return able, fetch.Errorf(fetch.NotFound, "the repository is empty")
	}
	for more := true; more; {
		if err := l.take(line); err != nil {
			return nil, err
		}
		if l.long() && l.complete {
			return able, nil
		}
		if l.long() {
			return nil, errLong
		}
		var err error
		if line, more, err = lines.Text(); err != nil {
			return nil, err
		}
	}
	return able, nil
}

// take looks at one line of the list.
func (l *listing) take(line []byte) error {
	text, name, found := strings.Cut(string(line), " ")
	if text == "shallow" {
		return nil // the repository has no history itself
	}
	hash, err := parseHash(text)
	if err != nil {
		return err
	}
	full, isPeeled := strings.CutSuffix(name, peeledSuffix)
	if !found || full == "" || strings.Contains(full, " ") {
		return protocol.NotGit("it has the line %s", fetch.Quote(string(line)))
	}
	return l.add(full, hash, isPeeled)
}

// add counts a reference, and keeps it when it is needed.
func (l *listing) add(full string, hash plumbing.Hash, isPeeled bool) error {
	if !isPeeled && full != headName {
		l.count++
	}
	if l.count > l.most {
		return fetch.Errorf(fetch.LimitExceeded, "the repository has more than %d references", l.most)
	}
	if _, seen := l.found.named[l.name]; seen && full != l.name {
		l.complete = true
	}
	needed, err := l.needs(full, hash)
	switch {
	case err != nil:
		return err
	case !needed:
		l.previousName, l.previousHash = full, hash
	case isPeeled:
		l.found.peeled[full] = hash
		if l.previousName == full { // the tag itself, which was not needed for what it points at
			l.found.named[full] = l.previousHash
		}
	default:
		l.found.named[full] = hash
	}
	return nil
}

// parseHash reads an object name as a server writes it.
func parseHash(text string) (plumbing.Hash, error) {
	var hash plumbing.Hash
	raw, err := hex.DecodeString(text)
	switch {
	case err == nil && len(raw) == sha256.Size:
		return hash, fetch.Errorf(fetch.Refused, "repositories with SHA-256 hashes are not supported yet")
	case err != nil || len(raw) != len(hash):
		return hash, protocol.NotGit("%s is no object name", fetch.Quote(text))
	}
	return plumbing.Hash(raw), nil
}

// firstLine returns the first line of a list of references, after the one that some transports put before it. In a list
// without any the error is that of an empty repository.
func firstLine(lines *protocol.Reader) ([]byte, error) {
	for {
		kind, line, err := lines.Next()
		line = bytes.TrimSuffix(line, []byte("\n"))
		switch {
		case errors.Is(err, io.EOF):
			return nil, protocol.NotGit("it is empty")
		case err != nil:
			return nil, err
		case bytes.HasPrefix(line, []byte("# service=")):
			if _, more, err := lines.Text(); err != nil || more {
				return nil, cmp.Or(err, protocol.NotGit("its first section does not end"))
			}
		case kind == protocol.Flush:
			return nil, fetch.Errorf(fetch.NotFound, "the repository is empty")
		default:
			return line, nil
		}
	}
}
