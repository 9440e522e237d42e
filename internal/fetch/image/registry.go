// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	// maxManifest bounds a manifest or index, as registries themselves do.
	maxManifest = 4 << 20
	// maxErrorBody bounds the explanation of a failure.
	maxErrorBody = 64 << 10
	// unknownSize stands for a size that nobody declared.
	unknownSize = -1
)

// registry reads one repository. Requests go out without a login first, so that an open registry sees one request
// where one is enough; go-containerregistry's handshake follows when the registry asks for it.
type registry struct {
	repository name.Repository
	insecure   bool
	client     *http.Client

	mutex    sync.Mutex
	loggedIn http.RoundTripper
}

func newRegistry(repository name.Repository, insecure bool, client *http.Client) *registry {
	guarded := *client
	guarded.Transport = schemeGuard{insecure: insecure, next: client.Transport}
	return &registry{repository: repository, insecure: insecure, client: &guarded}
}

// schemeGuard refuses plain HTTP that nobody asked for. go-containerregistry falls back to it by itself for private
// and loopback addresses.
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

// resolve returns the digest that a tag points at.
func (r *registry) resolve(ctx context.Context, tag string) (fetch.Digest, error) {
	response, err := r.do(ctx, http.MethodHead, "manifests", tag)
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

// manifest returns the manifest or index with a digest.
func (r *registry) manifest(ctx context.Context, digest fetch.Digest, size int64) (document, error) {
	data, contentType, err := r.read(ctx, digest.String())
	if err != nil {
		return document{}, err
	}
	if _, err := io.Copy(io.Discard, digest.Verify(strings.NewReader(string(data)), size)); err != nil {
		return document{}, err
	}
	return parseDocument(data, contentType)
}

// read returns the body of a manifest and its content type.
func (r *registry) read(ctx context.Context, reference string) ([]byte, string, error) {
	response, err := r.get(ctx, "manifests", reference)
	if err != nil {
		return nil, "", err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxManifest+1))
	err = errors.Join(err, response.Body.Close())
	if err != nil {
		return nil, "", fetch.NetworkError(err)
	}
	if len(data) > maxManifest {
		return nil, "", fetch.Errorf(fetch.LimitExceeded, "the manifest has more than %d bytes", maxManifest)
	}
	return data, response.Header.Get("Content-Type"), nil
}

// blob returns the stream of a blob, not verified yet.
func (r *registry) blob(ctx context.Context, digest fetch.Digest, size int64) (io.ReadCloser, error) {
	response, err := r.get(ctx, "blobs", digest.String())
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

// get returns the answer to a GET that succeeded.
func (r *registry) get(ctx context.Context, kind, reference string) (*http.Response, error) {
	response, err := r.do(ctx, http.MethodGet, kind, reference)
	if err != nil || response.StatusCode == http.StatusOK {
		return response, err
	}
	failure := fetch.StatusError(response.StatusCode, response.Header, errorCode(response.Body))
	return nil, errors.Join(failure, response.Body.Close())
}

// do sends a request, and once more after a login when the registry wants one.
func (r *registry) do(ctx context.Context, method, kind, reference string) (*http.Response, error) {
	response, err := r.send(ctx, method, kind, reference)
	if err != nil || response.StatusCode != http.StatusUnauthorized || r.token() != nil ||
		response.Header.Get("WWW-Authenticate") == "" {
		return response, err
	}
	if err := response.Body.Close(); err != nil {
		return nil, fetch.NetworkError(err)
	}
	if err := r.login(ctx); err != nil {
		return nil, err
	}
	return r.send(ctx, method, kind, reference)
}

func (r *registry) send(ctx context.Context, method, kind, reference string) (*http.Response, error) {
	target := url.URL{Scheme: "https", Host: r.repository.RegistryStr()}
	if r.insecure {
		target.Scheme = "http"
	}
	target.Path = "/v2/" + r.repository.RepositoryStr() + "/" + kind + "/" + reference
	request, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return nil, fetch.Errorf(fetch.Refused, "the reference makes no valid URL: %w", err)
	}
	if kind == "manifests" {
		for _, mediaType := range accepted {
			request.Header.Add("Accept", string(mediaType))
		}
	}
	client := *r.client
	if token := r.token(); token != nil {
		client.Transport = token
	}
	response, err := client.Do(request)
	return response, fetch.NetworkError(err)
}

func (r *registry) token() http.RoundTripper {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.loggedIn
}

// login performs the registry's handshake as anybody.
func (r *registry) login(ctx context.Context) error {
	scopes := []string{r.repository.Scope(transport.PullScope)}
	token, err := transport.NewWithContext(ctx, r.repository.Registry, authn.Anonymous, r.client.Transport, scopes)
	if err != nil {
		return loginError(err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.loggedIn = token
	return nil
}

func loginError(err error) error {
	var answer *transport.Error
	switch {
	case fetch.ReasonOf(err) != "":
		return fetch.Describe(err, "asking for a token")
	case errors.As(err, &answer):
		detail := ""
		if len(answer.Errors) > 0 {
			detail = cleanCode(string(answer.Errors[0].Code))
		}
		return fetch.Describe(fetch.StatusError(answer.StatusCode, nil, detail), "asking for a token")
	case errors.Is(err, context.Canceled):
		return err
	}
	return fetch.Errorf(fetch.Unauthorized, "asking for a token: %w", err)
}

// errorCode returns the first code of a registry's error document, "" when there is none.
func errorCode(body io.Reader) string {
	var answer struct {
		Errors []struct {
			Code string `json:"code"`
		} `json:"errors"`
	}
	err := json.NewDecoder(io.LimitReader(body, maxErrorBody)).Decode(&answer)
	if err != nil || len(answer.Errors) == 0 {
		return ""
	}
	return cleanCode(answer.Errors[0].Code)
}

// codeText is what the distribution specification allows as an error code.
var codeText = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

func cleanCode(code string) string {
	if codeText.MatchString(code) {
		return code
	}
	return ""
}
