// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
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
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
)

// repository is one repository of a registry of go-containerregistry's.
type repository struct {
	name.Repository
	mutex    sync.Mutex
	requests []string
	change   func(w http.ResponseWriter, r *http.Request) bool // true when it answered
}

// newRepository serves a repository, with the referrers API or with the index that stands in for it.
func newRepository(t *testing.T, referrers bool) *repository {
	t.Helper()
	r := &repository{}
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
	repo, err := name.NewRepository(strings.TrimPrefix(server.URL, "http://") + "/org/bundle")
	if err != nil {
		t.Fatal(err)
	}
	r.Repository = repo
	return r
}

// alter begins to change answers, and forgets the requests so far.
func (r *repository) alter(change func(w http.ResponseWriter, r *http.Request) bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.change, r.requests = change, nil
}

func (r *repository) seen() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]string{}, r.requests...)
}

// push stores an image or index with the tag v1.
func (r *repository) push(t *testing.T, what remote.Taggable) name.Digest {
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

// image stores an image of its own.
func (r *repository) image(t *testing.T) name.Digest {
	t.Helper()
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	return r.push(t, img)
}

// index stores an index with one image, and returns both.
func (r *repository) index(t *testing.T) (index, child name.Digest) {
	t.Helper()
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return r.push(t, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img})), r.Digest(digest.String())
}

// client reaches the registries of tests.
func client(t testing.TB) *http.Client {
	t.Helper()
	c := fetch.AddressPolicy{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, InsecureHosts: []string{"127.0.0.1"},
	}.HTTPClient(fetch.DefaultLimits())
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// fetcher is a source with a verifier.
func fetcher(t testing.TB, ref string, verifier image.Verifier) *image.Fetcher {
	t.Helper()
	f, err := image.New(image.Options{
		Ref: ref, Insecure: true, Client: client(t), Limits: fetch.DefaultLimits(), Verify: verifier,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// verified verifies an image as a source does, and returns who signed it.
func verified(t testing.TB, ref string, verifier image.Verifier) (string, error) {
	t.Helper()
	f := fetcher(t, ref, verifier)
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	resolved, err = f.Verify(context.Background(), resolved)
	return resolved.VerifiedBy, err
}

func verifier(t testing.TB, o Options) *Verifier {
	t.Helper()
	v, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// manifestBytes is a manifest as it stands.
type manifestBytes struct {
	raw       []byte
	mediaType types.MediaType
}

func (m manifestBytes) RawManifest() ([]byte, error)        { return m.raw, nil }
func (m manifestBytes) MediaType() (types.MediaType, error) { return m.mediaType, nil }
