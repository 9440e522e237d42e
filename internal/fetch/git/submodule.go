// SPDX-License-Identifier: Apache-2.0

package git

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/modulesfile"
	"github.com/satchel-dev/satchel/internal/fetch/git/pack"
)

const (
	modulesFile = ".gitmodules"
	// maxModulesFile bounds that file.
	maxModulesFile = 64 << 10
	// maxSubmodules bounds the submodules of a repository, those of its submodules included; maxNesting how many of them
	// may lie in one another.
	maxSubmodules = 50
	maxNesting    = 3
)

// submodule is a place in a tree where another repository belongs.
type submodule struct {
	place  string // in the tree that is being written
	commit plumbing.Hash
	url    string // as .gitmodules has it
}

// modules finds the submodules of one commit. Which commit is taken is said by its tree, and which repository by the file
// .gitmodules at its root.
type modules struct {
	pack      *pack.File
	root      plumbing.Hash
	directory string            // the part of the repository that is taken
	urls      map[string]string // by path; nil before the file was read
	found     []submodule
}

// add notes a submodule.
func (m *modules) add(e entry, place string) error {
	if m.urls == nil {
		content, err := m.read()
		if err == nil {
			m.urls, err = modulesfile.Parse(content)
		}
		if err != nil {
			return fetch.Describe(err, "file %s", modulesFile)
		}
	}
	where := path.Join(m.directory, place)
	url, known := m.urls[where]
	if !known {
		return fetch.Errorf(fetch.InvalidContent, "the submodule %s has no URL in %s", fetch.Quote(where), modulesFile)
	}
	m.found = append(m.found, submodule{place, e.hash, url})
	return nil
}

// read returns the file, which must be a regular one: a link could lead to content of another author.
func (m *modules) read() ([]byte, error) {
	data, err := m.pack.Get(m.root, plumbing.TreeObject)
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(data)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(entries, func(e entry) bool { return e.name == modulesFile })
	if at < 0 {
		return nil, nil
	}
	if !fileModes[entries[at].mode] {
		return nil, fetch.Errorf(fetch.InvalidContent, "it is not a regular file")
	}
	blob, err := m.pack.Find(entries[at].hash, plumbing.BlobObject)
	if err != nil {
		return nil, err
	}
	if blob.Size > maxModulesFile {
		return nil, fetch.Errorf(fetch.LimitExceeded, "it has more than %d bytes", maxModulesFile)
	}
	return m.pack.Read(blob)
}

// resolveModule returns the URL of a submodule. It must be on the parent's server, the only one that the credentials, the
// certificates and the known hosts are for.
func resolveModule(parent *url.URL, text string) (*url.URL, error) {
	if strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") {
		return relative(parent, text)
	}
	if parent.Scheme == sshScheme && scpLike.MatchString(text) && !strings.Contains(text, "://") {
		host, where, _ := strings.Cut(text, ":")
		text = sshScheme + "://" + host + "/" + strings.TrimPrefix(where, "/")
	}
	target, err := parseRepository(text)
	if err != nil {
		return nil, err
	}
	if !endpoint.SameOrigin(target, parent) || target.User.Username() != parent.User.Username() {
		return nil, fetch.Errorf(fetch.Refused, "%s is on another server than the repository, which is refused: "+
			"scheme, user, host and port must be the same", fetch.DisplayURL(target))
	}
	if !plainPath(target.Path) {
		return nil, fetch.Errorf(fetch.Refused, "its path is not a plain one")
	}
	same := *parent // host and user in the very same spelling
	same.Path, same.RawPath = target.Path, target.RawPath
	return &same, nil
}

// relative resolves a URL that begins with ./ or ../, as git does: each ../ takes one part off the parent's path.
func relative(parent *url.URL, text string) (*url.URL, error) {
	base := strings.TrimRight(parent.Path, "/")
	for {
		if rest, found := strings.CutPrefix(text, "./"); found {
			text = rest
			continue
		}
		rest, found := strings.CutPrefix(text, "../")
		if !found {
			break
		}
		cut := strings.LastIndex(base, "/")
		if cut < 0 {
			return nil, fetch.Errorf(fetch.Refused, "it leads out of the server")
		}
		base, text = base[:cut], rest
	}
	target := *parent
	target.Path, target.RawPath = base+"/"+strings.TrimRight(text, "/"), ""
	if text == "" || !plainPath(target.Path) {
		return nil, fetch.Errorf(fetch.Refused, "its path is not a plain one")
	}
	return &target, nil
}

// plainPath tells whether nothing in a path leads elsewhere.
func plainPath(text string) bool {
	parts := strings.Split(strings.Trim(text, "/"), "/")
	return strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) || r == '\\' || r == '?' || r == '#' }) &&
		!slices.ContainsFunc(parts, func(part string) bool { return part == "" || part == "." || part == ".." })
}
