// SPDX-License-Identifier: Apache-2.0

// Package git fetches the files of one commit from a Git server, over HTTP (the smart protocol) or SSH.
//
// It speaks the protocol itself, so that there is no way to a file or git URL, and reads packs with the scanner of go-git,
// without an object store in memory. Links follow the rule of fetch.Tree, and so do submodules unless they are asked for.
package git

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/githubapp"
	"github.com/satchel-dev/satchel/internal/fetch/git/sshremote"
	"github.com/satchel-dev/satchel/internal/fetch/versions"
)

// Options describes what to take from a repository. At most one of Branch, Tag, SemVer, Name and Commit is set; without
// any it is the branch that the repository calls its HEAD.
type Options struct {
	// URL of the repository, https, http or ssh, without credentials.
	URL string
	// Branch to take the newest commit of.
	Branch string
	// Tag to take the commit of.
	Tag string
	// SemVer is a range; the newest tag in it is taken.
	SemVer string
	// Name is a full reference name, such as "refs/pull/1/head".
	Name string
	// Commit is a full hash; it cannot move.
	Commit string
	// Directory is the part of the repository to take; "" and "." are all of it.
	Directory string
	// Submodules has them fetched as well, from the same server only.
	Submodules bool
	// Verify is what must be signed; nil for nothing.
	Verify *Verification
	// Login is for the server of URL, and sent to no other one. Over plain HTTP it goes only where Client speaks that.
	Login fetch.Login
	// App logs in instead of Login.
	App *githubapp.Options
	// SSH is for an ssh URL, which needs it.
	SSH *sshremote.Options
	// Client decides what is reached over HTTP.
	Client *http.Client
	// Dial decides what is reached over SSH.
	Dial sshremote.Dial
	// Limits bounds what is read.
	Limits fetch.Limits
}

// Fetcher is one repository and what to take from it.
type Fetcher struct {
	url        *url.URL
	want       wanted
	directory  string
	submodules bool
	verify     *Verification
	login      fetch.Login
	app        *githubapp.App    // nil for none
	gate       *sshremote.Server // nil for HTTP
	client     *http.Client
	limits     fetch.Limits
}

// hints tell what a user without or with credentials may do. Servers hide what is not public.
var (
	anonymousHints = fetch.Hints{
		fetch.NotFound:     "check the URL and the reference, or that the repository is public",
		fetch.Unauthorized: "check the URL, or that the repository is public",
	}
	hints = fetch.Hints{
		fetch.NotFound:     "check the URL and the reference, and what the credentials may read",
		fetch.Unauthorized: "check the credentials, and what they may read",
	}
)

// tlsHints tell what a user may do about TLS.
var tlsHints = fetch.TLSHints{
	PlainHTTP: "use an http:// URL, which the source controller's --insecure-hosts has to permit for the host",
	Untrusted: "put the CA certificate as ca.crt into the Secret that secretRef names",
}

// New returns the fetcher of a repository, without asking the server yet.
func New(o Options) (*Fetcher, error) {
	parsed, err := parseRepository(o.URL)
	if err != nil {
		return nil, fetch.Describe(err, "git repository")
	}
	f := &Fetcher{url: parsed, submodules: o.Submodules, verify: o.Verify, login: o.Login, client: o.Client, limits: o.Limits}
	if err := f.prepare(o); err != nil {
		return nil, f.explain(err)
	}
	return f, nil
}

// prepare checks everything beside the URL.
func (f *Fetcher) prepare(o Options) (err error) {
	if f.url.Scheme == sshScheme {
		err = f.prepareSSH(o)
	} else {
		err = f.prepareHTTP(o)
	}
	if err != nil {
		return err
	}
	if f.want, err = parseWanted(o); err != nil {
		return err
	}
	if err = checkVerification(f.verify, f.want); err != nil {
		return err
	}
	f.directory, err = parseDirectory(o.Directory)
	return err
}

func (f *Fetcher) prepareHTTP(o Options) (err error) {
	switch {
	case o.Client == nil:
		return errors.New("an HTTP client is missing")
	case o.App == nil:
		return checkLogin(o.Login)
	case !o.Login.Empty():
		return fetch.Errorf(fetch.Refused, "a GitHub App and another login exclude each other")
	}
	f.app, err = githubapp.New(*o.App, o.Client)
	return err
}

func (f *Fetcher) prepareSSH(o Options) (err error) {
	switch {
	case o.SSH == nil:
		return fetch.Errorf(fetch.Refused, "an ssh URL needs a Secret with identity and known_hosts")
	case !o.Login.Empty() || o.App != nil:
		return fetch.Errorf(fetch.Refused, "user name, password, token and GitHub App are for https URLs: SSH takes a private key, as identity")
	case o.Dial == nil:
		return errors.New("a dialer is missing")
	}
	f.gate, err = sshremote.NewServer(f.url, *o.SSH, o.Dial)
	return err
}

// wanted is the reference to take; one of its fields is set, or none.
type wanted struct {
	branch string
	tag    string
	semver versions.Range
	name   string
	commit string
}

func parseWanted(o Options) (wanted, error) {
	set := 0
	for _, text := range []string{o.Branch, o.Tag, o.SemVer, o.Name, o.Commit} {
		if text != "" {
			set++
		}
	}
	if set > 1 {
		return wanted{}, fetch.Errorf(fetch.Refused, "only one of branch, tag, semver, name and commit can be given")
	}
	w := wanted{branch: o.Branch, tag: o.Tag, name: o.Name, commit: o.Commit}
	var err error
	switch {
	case o.Branch != "":
		return w, checkReference(branchPrefix + o.Branch)
	case o.Tag != "":
		return w, checkReference(tagPrefix + o.Tag)
	case o.Name != "":
		return w, checkName(o.Name)
	case o.Commit != "":
		return w, checkCommit(o.Commit)
	case o.SemVer != "":
		w.semver, err = versions.Parse(o.SemVer)
	}
	return w, err
}

// Resolve asks the server once what the reference points at. A commit is not asked for.
func (f *Fetcher) Resolve(ctx context.Context) (fetch.Resolved, error) {
	if f.want.commit != "" {
		return fetch.Resolved{Digest: digestOf(plumbing.NewHash(f.want.commit)), Pinned: true}, nil
	}
	refs, err := f.references(ctx, f.want.selection)
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	name, commit, err := f.want.choose(refs)
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	return fetch.Resolved{Reference: name, Digest: digestOf(commit)}, nil
}

// Fetch writes the files of the commit that r names, after verifying what must be signed. When the server no longer gives that commit away the error has
// the reason Moved.
func (f *Fetcher) Fetch(ctx context.Context, r fetch.Resolved, tree *fetch.Tree) (fetch.Resolved, error) {
	wanted, err := f.target(r)
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	work := &job{}
	if err := work.run(ctx, f, wanted, tree, 0); err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	r.VerifiedBy, r.Signature = work.verifiedBy, work.signature
	return r, nil
}

// remote is the repository, to which nothing was sent yet.
func (f *Fetcher) remote(ctx context.Context) (remote, error) {
	switch {
	case f.gate != nil:
		return sshremote.NewSession(f.gate, f.url.Path), nil
	case f.app != nil:
		login, err := f.app.Login(ctx)
		return newWeb(f.client, f.url, login), err
	}
	return newWeb(f.client, f.url, f.login), nil
}

func (f *Fetcher) explain(err error) error {
	shown := hints
	switch {
	case f.app != nil && fetch.ReasonOf(err) == fetch.Unauthorized:
		f.app.Forget() // it may have been revoked
	case f.app == nil && f.gate == nil && f.login.Empty():
		shown = anonymousHints
	}
	return shown.Explain(tlsHints.Explain(err), "git repository %s", fetch.DisplayURL(f.url))
}
