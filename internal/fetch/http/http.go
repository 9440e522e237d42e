// SPDX-License-Identifier: Apache-2.0

// Package http fetches the files of an archive that lies at a URL: tar, plain or compressed with gzip or zstd, or zip.
package http

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	digests "github.com/opencontainers/go-digest"

	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// Options describes one archive.
type Options struct {
	// URL is where it lies, https or http.
	URL string
	// Digest is what its bytes must have, SHA-2; "" accepts any.
	Digest string
	// Login are the credentials for the server; no other server gets them.
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

// tlsHints tell what a user may do about TLS.
var tlsHints = fetch.TLSHints{
	PlainHTTP: "use an http:// URL, which the source controller's --insecure-hosts has to permit for the host",
	Untrusted: "name a Secret with the CA certificate as ca.crt in certSecretRef",
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
		return fetch.Resolved{Validator: validatorOf(response.Header).text}, nil
	case http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusForbidden: // URLs that are signed for GET only
		return fetch.Resolved{}, nil
	}
	return fetch.Resolved{}, f.explain(fetch.StatusError(response.StatusCode, response.Header, ""))
}

// Fetch downloads the archive into a file beside the tree, has its signature verified where one is demanded, and only then
// unpacks it: content without a trusted signature is not read. Without a pin the result has the SHA-256 of the bytes that came
// and the validator that came with them, where that is strong; where r has a digest already, the bytes must have that.
func (f *Fetcher) Fetch(ctx context.Context, r fetch.Resolved, tree *fetch.Tree) (done fetch.Resolved, err error) {
	dir, remove, err := tree.Scratch()
	if err != nil {
		return fetch.Resolved{}, err
	}
	defer func() {
		if err = errors.Join(err, remove()); err != nil {
			err = f.explain(err)
		}
	}()
	archive, err := f.download(ctx, filepath.Join(dir, "archive"), tree, r.Digest)
	if err != nil {
		return fetch.Resolved{}, err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	if f.pin == nil {
		r.Digest, r.Validator = archive.sum.String(), ""
		if came := validatorOf(archive.header); came.strong {
			r.Validator = came.text
		}
	}
	r.VerifiedBy, r.Signature = "", ""
	if f.verify != nil {
		if r.VerifiedBy, r.Signature, err = f.verified(ctx, archive.sum); err != nil {
			return fetch.Resolved{}, err
		}
	}
	if err := unpackAs(ctx, archive, tree, f.url.Path); err != nil {
		return fetch.Resolved{}, err
	}
	return r, nil
}

// spooled is an archive that was downloaded whole.
type spooled struct {
	*os.File
	size   int64
	sum    fetch.Digest // SHA-256
	header http.Header  // of the answer that it came with
}

// download saves the archive, and returns the SHA-256 of its bytes as they came over the wire.
func (f *Fetcher) download(ctx context.Context, name string, tree *fetch.Tree, known string) (archive *spooled, err error) {
	response, err := f.request(ctx, http.MethodGet, f.url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if err := f.check(response); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	hash := sha256.New()
	body, err := f.expected(io.TeeReader(tree.Metered(network{response.Body}), hash), known)
	if err != nil {
		return nil, err
	}
	size, err := io.Copy(file, body)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, err
	}
	sum := fetch.Digest{Digest: digests.NewDigest(digests.SHA256, hash)}
	return &spooled{File: file, size: size, sum: sum, header: response.Header}, nil
}

// network gives the failures of a transfer their reason, and leaves those of the disk alone.
type network struct{ io.Reader }

// Read implements io.Reader.
func (n network) Read(p []byte) (int, error) {
	read, err := n.Reader.Read(p)
	if err == io.EOF { // a reader returns it as it is
		return read, err
	}
	return read, fetch.NetworkError(err)
}

// expected makes sure that the body has the digest that it is expected to have.
func (f *Fetcher) expected(body io.Reader, known string) (io.Reader, error) {
	switch {
	case f.pin != nil:
		return f.pin.Verify(body, unknownSize), nil
	case known == "":
		return body, nil
	}
	resolved, err := fetch.ParseDigest(known)
	if err != nil {
		return nil, err
	}
	return resolved.Verify(body, unknownSize), nil
}

// mostSignature bounds a signature file: a bundle with its certificates and log entries has some kilobytes.
const mostSignature = 1 << 20

// signature is what is kept of an accepted signature.
type signature struct {
	// Archive is the SHA-256 of the archive; the digest of the source may be another one.
	Archive string `json:"archive"`
	File    []byte `json:"file"`
}

// VerifyKept tells who signed the archive with a digest, by the signature that was kept when it was fetched
// (fetch.Resolved.Signature), without asking the server.
func VerifyKept(ctx context.Context, v Verifier, digest, kept string) (by string, err error) {
	var s signature
	if err := json.Unmarshal([]byte(kept), &s); err != nil {
		return "", fetch.Errorf(fetch.Unverified, "the signature that was kept cannot be read")
	}
	if strings.HasPrefix(digest, "sha256:") && digest != s.Archive {
		return "", fetch.Errorf(fetch.Unverified, "the signature that was kept is of another archive")
	}
	sum, err := fetch.ParseDigest(s.Archive)
	if err != nil {
		return "", err
	}
	return v.VerifyBlob(ctx, sum, s.File)
}

// verified returns who signed the archive with a digest, and the signature.
func (f *Fetcher) verified(ctx context.Context, digest fetch.Digest) (by, kept string, err error) {
	data, err := f.readSignature(ctx)
	if err != nil {
		return "", "", err
	}
	if by, err = f.verify.VerifyBlob(ctx, digest, data); err != nil {
		return "", "", err
	}
	encoded, err := json.Marshal(signature{Archive: digest.String(), File: data})
	if len(encoded) > maxKept {
		encoded = nil
	}
	return by, string(encoded), err
}

// maxKept bounds what is kept of a signature. One that takes more is accepted and not kept.
const maxKept = 384 << 10

func (f *Fetcher) readSignature(ctx context.Context) ([]byte, error) {
	response, err := f.request(ctx, http.MethodGet, f.signature)
	if err != nil {
		return nil, fetch.Describe(err, "its signature")
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, mostSignature+1))
	err = errors.Join(fetch.NetworkError(err), response.Body.Close())
	switch {
	case response.StatusCode == http.StatusNotFound:
		return nil, fetch.Errorf(fetch.Unverified, "it is not signed: there is nothing at %s", fetch.DisplayURL(f.signature))
	case response.StatusCode != http.StatusOK:
		return nil, fetch.Describe(fetch.StatusError(response.StatusCode, response.Header, ""), "its signature")
	case err != nil:
		return nil, fetch.Describe(err, "its signature")
	case len(data) > mostSignature:
		return nil, fetch.Errorf(fetch.LimitExceeded, "its signature has more than %d bytes", mostSignature)
	}
	return data, nil
}

func (f *Fetcher) request(ctx context.Context, method string, target *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return nil, fetch.Errorf(fetch.Refused, "the URL is malformed: %w", err)
	}
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set("User-Agent", "satchel")
	if endpoint.SameOrigin(target, f.url) {
		f.login.Authorize(request)
	}
	response, err := f.client.Do(request)
	return response, fetch.NetworkError(err)
}

// unknownSize stands for a size that was not declared.
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

// settled is the age from which a modification date identifies the content. Dates have a resolution of one second, and
// the clock that stamps the file may not be the server's.
const settled = time.Minute

// validator is what an answer says about the version of its content.
type validator struct {
	text   string // "" for nothing
	strong bool   // other content has another one
}

// validatorOf reads a validator as RFC 9110, section 8.8, defines it: an entity tag without W/ is strong, and the date of
// the last modification once it is older than the answer by more than settled. A weak tag is taken together with
// the date, for web servers make it of date and size.
func validatorOf(header http.Header) validator {
	tag, modified := header.Get("ETag"), header.Get("Last-Modified")
	v := validator{text: tag, strong: tag != ""}
	if tag == "" || strings.HasPrefix(tag, "W/") {
		v.text, v.strong = strings.TrimSpace(tag+" "+modified), Settled(modified, header.Get("Date"))
	}
	if len(v.text) > maxValidator {
		v.text = fetch.SHA256([]byte(v.text)).String()
	}
	return v
}

// Settled tells whether a modification date is so much older than the date of the answer that no later modification
// can have the same one.
func Settled(modified, answered string) bool {
	from, err := http.ParseTime(modified)
	if err != nil {
		return false
	}
	to, err := http.ParseTime(answered)
	return err == nil && to.Sub(from) >= settled
}

func (f *Fetcher) explain(err error) error {
	return hints.Explain(tlsHints.Explain(err), "archive %s", fetch.DisplayURL(f.url))
}
