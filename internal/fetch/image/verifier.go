// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Verifier decides whether an image may be used.
type Verifier interface {
	// Verify returns a description of the signer of s. If there is no trusted signature, the error's reason is
	// fetch.Unverified. An empty answer without an error counts as a failure.
	Verify(ctx context.Context, s Subject) (by string, err error)
}

// Subject is what the reference of a source resolved to, an image or an index: that is what must be signed.
type Subject struct {
	// Repository is "registry/repository", as in a reference.
	Repository string
	Digest     fetch.Digest
	MediaType  string
	Size       int64
	// Registry is where signatures of the subject may lie.
	Registry Registry
}

// Registry reads the repository of a subject, with the login of the source and within limits. Failures are
// *fetch.Error with a reason.
type Registry interface {
	// Manifest returns a manifest or index of at most 4 MiB by tag or digest, with the type that it has or, where it
	// does not say, that the server states. A digest is checked. What is not there is fetch.NotFound.
	Manifest(ctx context.Context, reference string) (data []byte, mediaType string, err error)
	// Referrers returns the manifests that refer to digest, of one type unless artifactType is "", from the API of
	// that name or else from the index with the tag "sha256-<hex>". None is no error.
	Referrers(ctx context.Context, digest fetch.Digest, artifactType string) ([]v1.Descriptor, error)
	// Blob returns a blob of at most limit bytes; size and digest are checked.
	Blob(ctx context.Context, d v1.Descriptor, limit int64) ([]byte, error)
}
