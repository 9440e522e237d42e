// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
	archive "github.com/satchel-dev/satchel/internal/fetch/http"
	"github.com/satchel-dev/satchel/internal/fetch/versions"
)

// Options describes one chart.
type Options struct {
	// Repository is the URL of the repository: the one to which /index.yaml is added.
	Repository string
	// Chart is its name.
	Chart string
	// Version is an exact version or a range; "" is the newest that is no prerelease.
	Version string
	// Digest is what the archive must have, whatever the index says; it needs an exact version. "" accepts that of the index.
	Digest string
	// Login are the credentials for the server of the repository; no other server gets them.
	Login fetch.Login
	// PassCredentials sends the login to the server of the archive as well, when the index names another one.
	PassCredentials bool
	// Client decides what is reached.
	Client *http.Client
	// Limits bounds what is read.
	Limits fetch.Limits
	// Previous is what the same chart was resolved to before, so that an index that did not change is not read again.
	Previous fetch.Resolved
}

// Fetcher is one chart.
type Fetcher struct {
	options    Options
	repository *url.URL
	wanted     versions.Range
	pin        string // the digest of the options, in lower case

	chosen *entry // what Resolve found
}

// hints tell what a user may do.
var hints = fetch.Hints{
	fetch.Unauthorized: "check the URL, and the login in the Secret of the source",
}

// tlsHints tell what a user may do about TLS.
var tlsHints = fetch.TLSHints{
	PlainHTTP: "use an http:// URL, which the source controller's --insecure-hosts has to permit for the host",
	Untrusted: "name a Secret with the CA certificate as ca.crt in certSecretRef",
}

// ociScheme begins the URL of a chart in a registry.
const ociScheme = "oci://"

// New returns the fetcher of a chart, without asking the server yet.
func New(o Options) (*Fetcher, error) {
	if o.Client == nil {
		return nil, errors.New("a chart fetcher needs an HTTP client")
	}
	if image, found := strings.CutPrefix(o.Repository, ociScheme); found {
		return nil, fetch.Errorf(fetch.Refused, "the Helm repository %s is a registry, which has no index: use image: {reference: %s} instead of helm",
			fetch.Quote(o.Repository), strings.TrimRight(image, "/")+"/"+o.Chart)
	}
	parsed, err := fetch.ParseURL(o.Repository)
	if err != nil {
		return nil, fetch.Describe(err, "Helm repository")
	}
	f := &Fetcher{options: o, repository: parsed}
	if f.wanted, err = versions.Parse(cmp.Or(o.Version, "*")); err != nil {
		return nil, f.explain(err)
	}
	if o.Digest == "" {
		return f, nil
	}
	pin, err := fetch.ParseDigest(o.Digest)
	if err != nil {
		return nil, f.explain(err)
	}
	if _, err := semver.NewVersion(o.Version); err != nil {
		return nil, f.explain(fetch.Errorf(fetch.Refused, "a digest is that of one archive, and %s is a range: write the exact version, or remove the digest",
			fetch.Quote(o.Version)))
	}
	f.pin = pin.String()
	return f, nil
}

// Resolve chooses the version and its digest by the index, which is asked for conditionally where that was read before. A
// version with a digest in the options is not asked for. Where the index names no digest, the archive is asked for a validator.
func (f *Fetcher) Resolve(ctx context.Context) (fetch.Resolved, error) {
	if f.pin != "" {
		return fetch.Resolved{Reference: f.options.Version, Digest: f.pin, Pinned: true}, nil
	}
	answer, err := f.readIndex(ctx, f.wanted, f.options.Version, f.options.Previous.Validator)
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	if answer.unchanged {
		previous := f.options.Previous
		previous.VerifiedBy, previous.Signature = "", ""
		return previous, nil
	}
	f.chosen = answer.entry
	r := fetch.Resolved{Reference: f.chosen.version, Warning: answer.warning}
	if r.Digest, err = f.chosen.identity(); err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	if r.Digest != "" {
		r.Validator = answer.validator
		return r, nil
	}
	from, err := f.archive(f.chosen, "")
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	asked, err := from.Resolve(ctx)
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	r.Validator = asked.Validator
	return r, nil
}

// Fetch downloads the archive of the version that r names, verifies its digest, and unpacks it. The index is read again where
// Resolve did not need it.
func (f *Fetcher) Fetch(ctx context.Context, r fetch.Resolved, tree *fetch.Tree) (fetch.Resolved, error) {
	one, err := f.entryOf(ctx, r)
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	named, err := one.identity()
	switch {
	case err != nil:
		return fetch.Resolved{}, f.explain(err)
	case f.pin != "" && named != "" && named != f.pin && strings.HasPrefix(f.pin, "sha256:"):
		return fetch.Resolved{}, f.explain(fetch.Errorf(fetch.DigestMismatch, "the index says that version %s has the digest %s, not %s: "+
			"the archive was replaced, or the digest of the source is wrong", one.version, named, f.pin))
	case r.Digest != "" && named != "" && named != r.Digest && f.pin == "":
		return fetch.Resolved{}, f.explain(fetch.Errorf(fetch.Moved, "the index says that version %s has the digest %s, and said %s before",
			one.version, named, r.Digest))
	}
	from, err := f.archive(one, cmp.Or(f.pin, named))
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	done, err := from.Fetch(ctx, r, tree)
	if f.pin == "" && fetch.ReasonOf(err) == fetch.DigestMismatch {
		err = fetch.Describe(err, "version %s is not what the index describes; ask the publisher of the repository to correct the index", one.version)
	}
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	done.Warning = r.Warning
	return done, nil
}

// entryOf returns the entry of the version that r names.
func (f *Fetcher) entryOf(ctx context.Context, r fetch.Resolved) (*entry, error) {
	if f.chosen != nil && f.chosen.version == r.Reference {
		return f.chosen, nil
	}
	exactly, err := versions.Parse(r.Reference)
	if err != nil {
		return nil, err
	}
	answer, err := f.readIndex(ctx, exactly, r.Reference, "")
	if err != nil {
		return nil, err
	}
	return answer.entry, nil
}

// archive returns the fetcher of the archive of an entry, with the digest that it must have; "" accepts any. The login goes
// to the server of the repository only, unless the options say otherwise.
func (f *Fetcher) archive(of *entry, digest string) (*archive.Fetcher, error) {
	at, err := f.archiveURL(of)
	if err != nil {
		return nil, err
	}
	o := archive.Options{URL: at.String(), Digest: digest, Client: f.options.Client, Limits: f.options.Limits}
	if f.options.PassCredentials || endpoint.SameOrigin(at, f.repository) {
		o.Login = f.options.Login
	}
	return archive.New(o)
}

// archiveURL is the first URL of an entry that is no registry's. As for Helm, a relative one is below the URL of the
// repository, and has its query.
func (f *Fetcher) archiveURL(of *entry) (*url.URL, error) {
	registry := ""
	for _, text := range of.urls {
		if strings.HasPrefix(text, ociScheme) {
			registry = cmp.Or(registry, text)
			continue
		}
		at, err := url.Parse(text)
		if err != nil {
			return nil, fetch.Errorf(fetch.InvalidContent, "the URL of version %s in the index is malformed", of.version)
		}
		if !at.IsAbs() {
			base := *f.repository
			base.Path, base.RawPath = strings.TrimRight(base.Path, "/")+"/", ""
			at = base.ResolveReference(at)
			at.RawQuery = base.RawQuery
		}
		checked, err := fetch.ParseURL(at.String())
		return checked, fetch.Describe(err, "version %s in the index", of.version)
	}
	if registry != "" {
		return nil, fetch.Errorf(fetch.Refused, "version %s lies in a registry, at %s: use image: {reference: %s} instead of helm",
			of.version, fetch.Quote(registry), strings.TrimPrefix(registry, ociScheme))
	}
	return nil, fetch.Errorf(fetch.InvalidContent, "the index has no URL for version %s", of.version)
}

func (f *Fetcher) explain(err error) error {
	return hints.Explain(tlsHints.Explain(err), "chart %s of the Helm repository %s", fetch.Quote(f.options.Chart), fetch.DisplayURL(f.repository))
}
