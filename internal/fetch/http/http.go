// SPDX-License-Identifier: Apache-2.0

// Package http fetches the files of an archive that lies at a URL: tar, plain or compressed with gzip or zstd, or zip.
package http

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Options describes one archive.
type Options struct {
	// URL is where it lies, https or http.
	URL string
	// Digest is what its bytes must have, SHA-2; "" accepts any.
	Digest string
	// Login is what the server is told about who asks; no other server is.
	Login fetch.Login
	// Signature is where a detached signature of the archive lies, for Verify.
	Signature string
	// Verify decides whether the archive may be used; nil accepts any.
	Verify Verifier
	// Client decides what is reached.
	Client *http.Client
	// Limits bounds what is read.
	Limits fetch.Limits
}

// Verifier decides whether an archive may be used.
type Verifier interface {
	// VerifyBlob returns who signed the bytes with a SHA-256 digest, given the content of a signature file. What it
	// does not accept is an *fetch.Error with the reason Unverified.
	VerifyBlob(ctx context.Context, digest fetch.Digest, signature []byte) (by string, err error)
}

// Fetcher is one archive.
type Fetcher struct {
	url       *url.URL
	pin       *fetch.Digest
	login     fetch.Login
	signature *url.URL
	verify    Verifier
	client    *http.Client
	limits    fetch.Limits
}

// hints tell what a user may do.
var hints = fetch.Hints{
	fetch.NotFound:       "check the URL",
	fetch.Unauthorized:   "check the URL, and the login in the Secret of the source",
	fetch.DigestMismatch: "the archive has changed, or the digest of the source is wrong",
}

// New returns the fetcher of an archive, without asking the server yet.
func New(o Options) (*Fetcher, error) {
	if o.Client == nil {
		return nil, errors.New("an archive fetcher needs an HTTP client")
	}
	parsed, err := fetch.ParseURL(o.URL)
	if err != nil {
		return nil, fetch.Describe(err, "archive")
	}
	f := &Fetcher{url: parsed, login: o.Login, verify: o.Verify, client: o.Client, limits: o.Limits}
	if o.Verify != nil {
		if f.signature, err = fetch.ParseURL(o.Signature); err != nil {
			return nil, f.explain(fetch.Describe(err, "its signature"))
		}
	}
	if o.Digest != "" {
		pin, err := fetch.ParseDigest(o.Digest)
		if err != nil {
			return nil, f.explain(err)
		}
		f.pin = &pin
	}
	return f, nil
}

// Resolve asks the server with one HEAD request for a validator of the present content. A digest is not asked for.
// Where the server knows neither HEAD nor validators, the answer is empty, and the archive is downloaded each time.
func (f *Fetcher) Resolve(ctx context.Context) (fetch.Resolved, error) {
	if f.pin != nil {
		return fetch.Resolved{Digest: f.pin.String(), Pinned: true}, nil
	}
	response, err := f.request(ctx, http.MethodHead, f.url)
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	if err := response.Body.Close(); err != nil {
		return fetch.Resolved{}, f.explain(fetch.NetworkError(err))
	}
	switch response.StatusCode {
	case http.StatusOK:
		return fetch.Resolved{Validator: validator(response.Header)}, nil
	case http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusForbidden: // URLs that are signed for GET only
		return fetch.Resolved{}, nil
	}
	return fetch.Resolved{}, f.explain(fetch.StatusError(response.StatusCode, response.Header, ""))
}

// Fetch downloads and unpacks the archive at once. Without a pin the result has the SHA-256 of the bytes that came
// and the validator that came with them; where r has a digest already, the bytes must have that.
func (f *Fetcher) Fetch(ctx context.Context, r fetch.Resolved, tree *fetch.Tree) (fetch.Resolved, error) {
	response, err := f.request(ctx, http.MethodGet, f.url)
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	sum, err := f.unpack(ctx, response, tree, r.Digest)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	if f.pin == nil {
		r.Digest, r.Validator = sum.String(), validator(response.Header)
	}
	if f.verify != nil {
		if r.VerifiedBy, err = f.verified(ctx, sum); err != nil {
			return fetch.Resolved{}, f.explain(err)
		}
	}
	return r, nil
}

// mostSignature bounds a signature file: a bundle with its certificates and log entries has some kilobytes.
const mostSignature = 1 << 20

// verified returns who signed the archive with a digest.
func (f *Fetcher) verified(ctx context.Context, digest fetch.Digest) (string, error) {
	response, err := f.request(ctx, http.MethodGet, f.signature)
	if err != nil {
		return "", fetch.Describe(err, "its signature")
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, mostSignature+1))
	err = errors.Join(fetch.NetworkError(err), response.Body.Close())
	switch {
	case response.StatusCode == http.StatusNotFound:
		return "", fetch.Errorf(fetch.Unverified, "it is not signed: there is nothing at %s", fetch.DisplayURL(f.signature))
	case response.StatusCode != http.StatusOK:
		return "", fetch.Describe(fetch.StatusError(response.StatusCode, response.Header, ""), "its signature")
	case err != nil:
		return "", fetch.Describe(err, "its signature")
	case len(data) > mostSignature:
		return "", fetch.Errorf(fetch.LimitExceeded, "its signature has more than %d bytes", mostSignature)
	}
	return f.verify.VerifyBlob(ctx, digest, data)
}

func (f *Fetcher) request(ctx context.Context, method string, target *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return nil, fetch.Errorf(fetch.Refused, "the URL is malformed: %w", err)
	}
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set("User-Agent", "satchel")
	if target.Scheme == f.url.Scheme && target.Host == f.url.Host {
		f.login.Authorize(request)
	}
	response, err := f.client.Do(request)
	return response, fetch.NetworkError(err)
}

// unpack reads the answer to its end and returns the SHA-256 of its bytes as they came over the wire.
func (f *Fetcher) unpack(ctx context.Context, response *http.Response, tree *fetch.Tree, known string) (fetch.Digest, error) {
	if err := f.check(response); err != nil {
		return fetch.Digest{}, err
	}
	hash := sha256.New()
	body := io.TeeReader(tree.Metered(response.Body), hash)
	if f.pin != nil {
		body = f.pin.Verify(body, unknownSize)
	} else if known != "" {
		resolved, err := fetch.ParseDigest(known)
		if err != nil {
			return fetch.Digest{}, err
		}
		body = resolved.Verify(body, unknownSize)
	}
	if err := unpackAs(ctx, body, tree, response.Header, f.url.Path); err != nil {
		return fetch.Digest{}, err
	}
	return fetch.ParseDigest(fmt.Sprintf("sha256:%x", hash.Sum(nil)))
}

// unknownSize stands for a size that nobody declared.
const unknownSize = -1

// check refuses what can be seen to be wrong before the body is read.
func (f *Fetcher) check(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return fetch.StatusError(response.StatusCode, response.Header, "")
	}
	if response.ContentLength > f.limits.DownloadBytes {
		return fetch.Errorf(fetch.LimitExceeded, "the server declares %d bytes, more than %d",
			response.ContentLength, f.limits.DownloadBytes)
	}
	// Servers label a .tgz with its own compression. Its bytes are taken as they come, so that digest and format do
	// not depend on the label.
	switch encoding := response.Header.Get("Content-Encoding"); encoding {
	case "", "identity", "gzip", "x-gzip":
		return nil
	default:
		return fetch.Errorf(fetch.InvalidContent, "the server sends the content encoding %s although none was asked for",
			fetch.Quote(encoding))
	}
}

// maxValidator bounds what is kept of a server's word.
const maxValidator = 256

// validator returns what an answer says about its content's version, "" when that is nothing.
func validator(header http.Header) string {
	for _, name := range []string{"ETag", "Last-Modified"} {
		value := header.Get(name)
		if len(value) > maxValidator {
			value = fetch.SHA256([]byte(value)).String()
		}
		if value != "" {
			return value
		}
	}
	return ""
}

func (f *Fetcher) explain(err error) error {
	return hints.Explain(err, "archive %s", fetch.DisplayURL(f.url))
}
