// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image/answer"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
)

const (
	// maxManifest bounds a manifest or index, as registries themselves do.
	maxManifest = 4 << 20
	// unknownSize stands for a size that was not declared.
	unknownSize = -1
)

// registry reads one repository. Without a login, requests go out as they are, so that an open registry sees one
// request where one is enough.
type registry struct {
	repository name.Repository
	insecure   bool
	client     *http.Client
	session    *registryauth.Session
}

func newRegistry(repository name.Repository, o Options) *registry {
	guarded := *o.Client
	guarded.Transport = schemeGuard{insecure: o.Insecure, next: o.Client.Transport}
	r := &registry{repository: repository, insecure: o.Insecure, client: &guarded}
	r.session = registryauth.NewSession(repository, r.scheme(), r.client, o.Keychain)
	return r
}

func (r *registry) host() string { return r.repository.RegistryStr() }

// schemeGuard refuses plain HTTP that the source does not permit, to which a registry could lead: a token server, a redirect.
type schemeGuard struct {
	insecure bool
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s schemeGuard) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" && !s.insecure {
		return nil, fetch.Errorf(fetch.Refused, "plain HTTP to %s is refused: the source does not say insecure",
			fetch.Quote(request.URL.Host))
	}
	return s.next.RoundTrip(request)
}

// CloseIdleConnections makes http.Client.CloseIdleConnections work.
func (s schemeGuard) CloseIdleConnections() {
	if closer, ok := s.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// resolve returns the digest that a tag points at.
func (r *registry) resolve(ctx context.Context, tag string) (fetch.Digest, error) {
	response, err := r.do(ctx, http.MethodHead, manifestOf(tag))
	if err != nil {
		return fetch.Digest{}, err
	}
	if err := response.Body.Close(); err != nil {
		return fetch.Digest{}, fetch.NetworkError(err)
	}
	if response.StatusCode == http.StatusOK {
		if digest, err := fetch.ParseDigest(response.Header.Get("Docker-Content-Digest")); err == nil {
			return digest, nil
		}
	}
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError &&
		response.StatusCode != http.StatusNotImplemented {
		return fetch.Digest{}, fetch.StatusError(response.StatusCode, response.Header, "")
	}
	return r.resolveByGet(ctx, tag)
}

// resolveByGet serves registries without HEAD or its digest header, and finds the words for a failure, since the
// answer to HEAD has none.
func (r *registry) resolveByGet(ctx context.Context, tag string) (fetch.Digest, error) {
	data, _, err := r.read(ctx, tag)
	if err != nil {
		return fetch.Digest{}, err
	}
	return fetch.SHA256(data), nil
}

// manifest returns the manifest or index with a digest, and its size.
func (r *registry) manifest(ctx context.Context, digest fetch.Digest, size int64) (document, int64, error) {
	data, contentType, err := r.read(ctx, digest.String())
	if err != nil {
		return document{}, 0, err
	}
	if err := verified(data, digest, size); err != nil {
		return document{}, 0, err
	}
	d, err := parseDocument(data, contentType)
	return d, int64(len(data)), err
}

// verified compares what came with what was asked for.
func verified(data []byte, digest fetch.Digest, size int64) error {
	_, err := io.Copy(io.Discard, digest.Verify(bytes.NewReader(data), size))
	return err
}

// read returns the body of a manifest and its content type.
func (r *registry) read(ctx context.Context, reference string) ([]byte, string, error) {
	response, err := r.get(ctx, manifestOf(reference))
	if err != nil {
		return nil, "", err
	}
	data, err := readAll(response, "manifest")
	return data, response.Header.Get("Content-Type"), err
}

// blob returns the stream of a blob, not verified yet.
func (r *registry) blob(ctx context.Context, digest fetch.Digest, size int64) (io.ReadCloser, error) {
	response, err := r.get(ctx, question{path: "blobs/" + digest.String()})
	if err != nil {
		return nil, err
	}
	if response.ContentLength >= 0 && response.ContentLength != size {
		err := fetch.Errorf(fetch.DigestMismatch, "the registry sends %d bytes instead of the declared %d",
			response.ContentLength, size)
		return nil, errors.Join(err, response.Body.Close())
	}
	return response.Body, nil
}

// question is what is asked of the repository.
type question struct {
	path   string // below the repository
	query  string
	accept []string
}

func manifestOf(reference string) question {
	return question{path: "manifests/" + reference, accept: accepted}
}

// get returns the answer to a GET that succeeded.
func (r *registry) get(ctx context.Context, q question) (*http.Response, error) {
	response, err := r.do(ctx, http.MethodGet, q)
	if err != nil || response.StatusCode == http.StatusOK {
		return response, err
	}
	return nil, answer.Failure(response)
}

// do asks, and once more with what a login gained when the registry wants one.
func (r *registry) do(ctx context.Context, method string, q question) (*http.Response, error) {
	authorization, err := r.session.Authorization(ctx)
	if err != nil {
		return nil, err
	}
	target := "/v2/" + r.repository.RepositoryStr() + "/" + q.path
	response, err := r.send(ctx, method, target, q, authorization)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	renewed, err := r.session.Answer(ctx, response)
	if err == nil && (renewed == "" || renewed == authorization) {
		return response, nil
	}
	if err := errors.Join(err, fetch.NetworkError(response.Body.Close())); err != nil {
		return nil, err
	}
	return r.send(ctx, method, target, q, renewed)
}

// send sends one request to the registry. The guard below the client takes the authorization off where a redirect
// leads elsewhere.
func (r *registry) send(ctx context.Context, method, path string, q question, authorization string) (*http.Response, error) {
	target := url.URL{Scheme: r.scheme(), Host: r.host(), Path: path, RawQuery: q.query}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return nil, fetch.Errorf(fetch.Refused, "the reference makes no valid URL: %w", err)
	}
	for _, mediaType := range q.accept {
		request.Header.Add("Accept", mediaType)
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := r.client.Do(request)
	return response, fetch.NetworkError(err)
}

func (r *registry) scheme() string {
	if r.insecure {
		return "http"
	}
	return "https"
}
