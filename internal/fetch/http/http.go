// SPDX-License-Identifier: Apache-2.0

// Package http fetches the files of an archive that lies at a URL: tar, plain or gzip-compressed.
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
	// Client decides what is reached.
	Client *http.Client
	// Limits bounds what is read.
	Limits fetch.Limits
}

// Fetcher is one archive.
type Fetcher struct {
	url    *url.URL
	pin    *fetch.Digest
	client *http.Client
	limits fetch.Limits
}

// hints tell what a user may do.
var hints = fetch.Hints{
	fetch.NotFound:       "check the URL",
	fetch.Unauthorized:   "check the URL, or that the archive is public",
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
	f := &Fetcher{url: parsed, client: o.Client, limits: o.Limits}
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
	response, err := f.request(ctx, http.MethodHead)
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	if err := response.Body.Close(); err != nil {
		return fetch.Resolved{}, f.explain(fetch.NetworkError(err))
	}
	switch response.StatusCode {
	case http.StatusOK:
		return fetch.Resolved{Validator: validator(response.Header)}, nil
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return fetch.Resolved{}, nil
	}
	return fetch.Resolved{}, f.explain(fetch.StatusError(response.StatusCode, response.Header, ""))
}

// Fetch downloads and unpacks the archive at once. Without a pin the result has the SHA-256 of the bytes that came
// and the validator that came with them.
func (f *Fetcher) Fetch(ctx context.Context, r fetch.Resolved, tree *fetch.Tree) (fetch.Resolved, error) {
	response, err := f.request(ctx, http.MethodGet)
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	sum, err := f.unpack(ctx, response, tree)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	if f.pin == nil {
		r.Digest, r.Validator = sum, validator(response.Header)
	}
	return r, nil
}

func (f *Fetcher) request(ctx context.Context, method string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, f.url.String(), nil)
	if err != nil {
		return nil, fetch.Errorf(fetch.Refused, "the URL is malformed: %w", err)
	}
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set("User-Agent", "satchel")
	response, err := f.client.Do(request)
	return response, fetch.NetworkError(err)
}

// unpack reads the answer to its end and returns the SHA-256 of its bytes as they came over the wire.
func (f *Fetcher) unpack(ctx context.Context, response *http.Response, tree *fetch.Tree) (string, error) {
	if err := f.check(response); err != nil {
		return "", err
	}
	hash := sha256.New()
	body := io.TeeReader(tree.Metered(response.Body), hash)
	if f.pin != nil {
		body = f.pin.Verify(body, unknownSize)
	}
	if err := unpackAs(ctx, body, tree, response.Header); err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil)), nil
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
