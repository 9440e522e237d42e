// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"context"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/notaryproject/notation-go/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	oras "oras.land/oras-go/v2/registry/remote"

	"github.com/satchel-dev/satchel/tests/images"
)

// repository is one with signed images.
type repository struct{ *images.Repository }

// newRepository serves a repository, with the referrers API or with the index that stands in for it.
func newRepository(t testing.TB, referrers bool) repository {
	t.Helper()
	return repository{images.New(t, referrers)}
}

// signatures is the repository as notation sees it.
func (r repository) signatures(t testing.TB) registry.Repository {
	t.Helper()
	repo, err := oras.NewRepository(r.Name())
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	return registry.NewRepository(repo)
}

// store keeps an envelope as a signature of an image.
func (r repository) store(t testing.TB, ref name.Digest, mediaType string, envelope []byte) {
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
func (r repository) descriptor(t testing.TB, ref name.Digest) ocispec.Descriptor {
	t.Helper()
	subject, err := r.signatures(t).Resolve(context.Background(), ref.DigestStr())
	if err != nil {
		t.Fatal(err)
	}
	return ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}
}
