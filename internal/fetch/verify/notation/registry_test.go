// SPDX-License-Identifier: Apache-2.0

package notation

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
	"github.com/notaryproject/notation-go/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	oras "oras.land/oras-go/v2/registry/remote"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
)

// repository is one repository of a registry of go-containerregistry's.
type repository struct {
	name.Repository
	mutex  sync.Mutex
	change func(w http.ResponseWriter, r *http.Request) bool // true when it answered
}

// newRepository serves a repository, with the referrers API or with the index that stands in for it.
func newRepository(t testing.TB, referrers bool) *repository {
	t.Helper()
	r := &repository{}
	handler := upstreams.New(upstreams.Logger(log.New(io.Discard, "", 0)), upstreams.WithReferrersSupport(referrers))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mutex.Lock()
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

// alter begins to change answers.
func (r *repository) alter(change func(w http.ResponseWriter, r *http.Request) bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.change = change
}

// push stores an image or index with the tag v1.
func (r *repository) push(t testing.TB, what remote.Taggable) name.Digest {
	t.Helper()
	var err error
	switch what := what.(type) {
	case v1.ImageIndex:
		err = remote.WriteIndex(r.Tag("v1"), what)
	case v1.Image:
		err = remote.Write(r.Tag("v1"), what)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := remote.Head(r.Tag("v1"))
	if err != nil {
		t.Fatal(err)
	}
	return r.Digest(d.Digest.String())
}

func randomImage(t testing.TB) v1.Image {
	t.Helper()
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// image stores an image of its own.
func (r *repository) image(t testing.TB) name.Digest {
	t.Helper()
	return r.push(t, randomImage(t))
}

// index stores an index with one image, and returns both.
func (r *repository) index(t testing.TB) (index, child name.Digest) {
	t.Helper()
	img := randomImage(t)
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return r.push(t, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img})), r.Digest(digest.String())
}

// signatures is the repository as notation sees it.
func (r *repository) signatures(t testing.TB) registry.Repository {
	t.Helper()
	repo, err := oras.NewRepository(r.Name())
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	return registry.NewRepository(repo)
}

// store keeps an envelope as a signature of an image.
func (r *repository) store(t testing.TB, ref name.Digest, mediaType string, envelope []byte) {
	t.Helper()
	ctx := context.Background()
	repo := r.signatures(t)
	subject, err := repo.Resolve(ctx, ref.DigestStr())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := repo.PushSignature(ctx, mediaType, envelope, subject, nil); err != nil {
		t.Fatal(err)
	}
}

// descriptor is what a signature has to name.
func (r *repository) descriptor(t testing.TB, ref name.Digest) ocispec.Descriptor {
	t.Helper()
	subject, err := r.signatures(t).Resolve(context.Background(), ref.DigestStr())
	if err != nil {
		t.Fatal(err)
	}
	return ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}
}

// client reaches the servers of tests.
func client(t testing.TB) *http.Client {
	t.Helper()
	c := fetch.AddressPolicy{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, InsecureHosts: []string{"127.0.0.1"},
	}.HTTPClient(fetch.DefaultLimits())
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// verified verifies an image as a source does, and returns who signed it.
func verified(t testing.TB, ref string, verifier image.Verifier) (string, error) {
	t.Helper()
	f, err := image.New(image.Options{
		Ref: ref, Insecure: true, Client: client(t), Limits: fetch.DefaultLimits(), Verify: verifier,
	})
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	resolved, err = f.Verify(context.Background(), resolved)
	return resolved.VerifiedBy, err
}
