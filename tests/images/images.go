// SPDX-License-Identifier: Apache-2.0

// Package images serves images to be signed and verified, from a registry that knows referrers.
package images

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	upstreams "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/fetch/image"
)

// Repository is one repository of a registry of go-containerregistry's.
type Repository struct {
	name.Repository
	mutex    sync.Mutex
	requests []string
	change   func(w http.ResponseWriter, r *http.Request) bool // true when it answered
}

// New serves a repository, with the referrers API or with the index that stands in for it.
func New(t testing.TB, referrers bool) *Repository {
	t.Helper()
	r := &Repository{}
	handler := upstreams.New(upstreams.Logger(log.New(io.Discard, "", 0)), upstreams.WithReferrersSupport(referrers))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mutex.Lock()
		r.requests = append(r.requests, request.Method+" "+request.URL.Path)
		change := r.change
		r.mutex.Unlock()
		if change == nil || !change(w, request) {
			handler.ServeHTTP(w, request)
		}
	}))
	t.Cleanup(server.Close)
	repository, err := name.NewRepository(strings.TrimPrefix(server.URL, "http://") + "/org/bundle")
	if err != nil {
		t.Fatal(err)
	}
	r.Repository = repository
	return r
}

// Alter begins to change answers, and forgets the requests so far.
func (r *Repository) Alter(change func(w http.ResponseWriter, r *http.Request) bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.change, r.requests = change, nil
}

// Seen are the requests, by method and path.
func (r *Repository) Seen() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.requests)
}

// Push stores an image or index with the tag v1.
func (r *Repository) Push(t testing.TB, what remote.Taggable) name.Digest {
	t.Helper()
	ctx, tag := context.Background(), r.Tag("v1")
	var err error
	switch what := what.(type) {
	case v1.ImageIndex:
		err = remote.WriteIndex(tag, what, remote.WithContext(ctx))
	case v1.Image:
		err = remote.Write(tag, what, remote.WithContext(ctx))
	default:
		t.Fatalf("%T cannot be pushed", what)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := remote.Head(tag, remote.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	return r.Digest(d.Digest.String())
}

// Random is an image of its own.
func Random(t testing.TB) v1.Image {
	t.Helper()
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// Image stores an image of its own.
func (r *Repository) Image(t testing.TB) name.Digest {
	t.Helper()
	return r.Push(t, Random(t))
}

// Index stores an index with one image, and returns both.
func (r *Repository) Index(t testing.TB) (index, child name.Digest) {
	t.Helper()
	img := Random(t)
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return r.Push(t, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img})), r.Digest(digest.String())
}

// Client reaches the servers of tests.
func Client(t testing.TB) *http.Client {
	t.Helper()
	c := guard.AddressPolicy{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, InsecureHosts: []string{"127.0.0.1"},
	}.HTTPClient(fetch.DefaultLimits())
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// Fetcher is a source with a verifier, or with none.
func Fetcher(t testing.TB, ref string, verifier image.Verifier) *image.Fetcher {
	t.Helper()
	options := image.Options{Ref: ref, Insecure: true, Client: Client(t), Limits: fetch.DefaultLimits()}
	if verifier != nil {
		options.Verify = []image.Verifier{verifier}
	}
	f, err := image.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Verified verifies an image as a source does, and returns who signed it.
func Verified(t testing.TB, ref string, verifier image.Verifier) (string, error) {
	t.Helper()
	f := Fetcher(t, ref, verifier)
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	resolved, err = f.Verify(context.Background(), resolved)
	return resolved.VerifiedBy, err
}
