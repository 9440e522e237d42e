// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"encoding/json"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// maxKept bounds what is kept of a signature. One that takes more is accepted and not kept.
const maxKept = 384 << 10

// kept is the signature by which an image was accepted, as the registry served it: enough to verify it again by another
// trust without the registry.
type kept struct {
	// Repository, MediaType and Size are those of the subject.
	Repository string `json:"repository"`
	MediaType  string `json:"mediaType"`
	Size       int64  `json:"size"`
	// Reference is the tag or digest of the manifest that holds the signature.
	Reference    string `json:"reference"`
	ManifestData []byte `json:"manifest"`
	ManifestType string `json:"manifestType"`
	// Listed is how the manifest was listed, where it refers to the subject.
	Listed []v1.Descriptor `json:"listed,omitempty"`
	// BlobDigest is that of the signature itself, and BlobData its content.
	BlobDigest string `json:"blobDigest"`
	BlobData   []byte `json:"blob"`
}

// replay answers as the registry did, with nothing but the signature that was kept.
type replay struct{ kept }

// Manifest implements Registry.
func (r replay) Manifest(_ context.Context, reference string) ([]byte, string, error) {
	if reference != r.Reference {
		return nil, "", fetch.Errorf(fetch.NotFound, "it was not kept")
	}
	return r.ManifestData, r.ManifestType, nil
}

// Referrers implements Registry.
func (r replay) Referrers(_ context.Context, _ fetch.Digest, artifactType string) ([]v1.Descriptor, error) {
	return slices.DeleteFunc(slices.Clone(r.Listed), func(d v1.Descriptor) bool {
		return artifactType != "" && d.ArtifactType != artifactType
	}), nil
}

// Blob implements Registry.
func (r replay) Blob(_ context.Context, d v1.Descriptor, limit int64) ([]byte, error) {
	if d.Digest.String() != r.BlobDigest || int64(len(r.BlobData)) > limit {
		return nil, fetch.Errorf(fetch.NotFound, "it was not kept")
	}
	return r.BlobData, nil
}

// recorder remembers what a verifier read last. Verifiers read one signature after the other and end with the one that
// they accept.
type recorder struct {
	Registry
	kept
	listed []v1.Descriptor
}

// Manifest implements Registry.
func (r *recorder) Manifest(ctx context.Context, reference string) ([]byte, string, error) {
	data, mediaType, err := r.Registry.Manifest(ctx, reference)
	if err == nil {
		r.Reference = reference
		r.ManifestData = data
		r.ManifestType = mediaType
	}
	return data, mediaType, err
}

// Referrers implements Registry.
func (r *recorder) Referrers(ctx context.Context, digest fetch.Digest, artifactType string) ([]v1.Descriptor, error) {
	found, err := r.Registry.Referrers(ctx, digest, artifactType)
	r.listed = append(r.listed, found...)
	return found, err
}

// Blob implements Registry.
func (r *recorder) Blob(ctx context.Context, d v1.Descriptor, limit int64) ([]byte, error) {
	data, err := r.Registry.Blob(ctx, d, limit)
	if err == nil {
		r.BlobDigest, r.BlobData = d.Digest.String(), data
	}
	return data, err
}

// signature is what is kept of what was read last; "" when it is too large, or nothing was read.
func (r *recorder) signature() string {
	k := r.kept
	if _, err := fetch.ParseDigest(k.Reference); err == nil {
		k.Listed = slices.DeleteFunc(r.listed, func(d v1.Descriptor) bool { return d.Digest.String() != k.Reference })
	} else if k.ManifestData = onlyLayers(k.ManifestData, k.BlobDigest); k.ManifestData == nil {
		return ""
	}
	encoded, err := json.Marshal(k)
	if err != nil || len(encoded) > maxKept || k.BlobDigest == "" {
		return ""
	}
	return string(encoded)
}

// onlyLayers is a manifest with nothing but the layers that have a digest. It is read by its tag, so that its own digest
// does not matter.
func onlyLayers(manifest []byte, digest string) []byte {
	var m struct {
		MediaType string          `json:"mediaType,omitempty"`
		Layers    []v1.Descriptor `json:"layers"`
	}
	if json.Unmarshal(manifest, &m) != nil {
		return nil
	}
	m.Layers = slices.DeleteFunc(m.Layers, func(d v1.Descriptor) bool { return d.Digest.String() != digest })
	encoded, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return encoded
}
