// SPDX-License-Identifier: Apache-2.0

// Package image fetches the files of a container image or OCI artifact from a registry: all layers, flattened.
package image

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Options describes one image.
type Options struct {
	// Ref is the image with a tag or digest; a digest wins over a tag, without both the tag is latest.
	Ref string
	// Platform is the child of an index to take, "os/architecture[/variant]". When it is empty that is linux/amd64,
	// or the only image that there is.
	Platform string
	// Insecure speaks plain HTTP; the caller has checked that the host may be spoken to in that way, and Client
	// checks it again.
	Insecure bool
	// Client decides what is reached.
	Client *http.Client
	// Limits bounds what is read.
	Limits fetch.Limits
}

// Fetcher is one image.
type Fetcher struct {
	ref      name.Reference
	pinned   bool
	platform platform
	registry *registry
	limits   fetch.Limits
}

// hints tell what a user may do.
var hints = fetch.Hints{
	fetch.NotFound:       "check the tag, or that the repository is public",
	fetch.Unauthorized:   "check the name, or that the repository is public",
	fetch.DigestMismatch: "the registry serves other bytes than it should",
}

// New returns the fetcher of an image, without asking the registry yet.
func New(o Options) (*Fetcher, error) {
	if o.Client == nil {
		return nil, errors.New("an image fetcher needs an HTTP client")
	}
	ref, err := parseReference(o.Ref, o.Insecure)
	if err != nil {
		return nil, err
	}
	wanted, err := parsePlatform(o.Platform)
	if err != nil {
		return nil, fetch.Describe(err, "image %s", o.Ref)
	}
	_, pinned := ref.(name.Digest)
	return &Fetcher{
		ref:      ref,
		pinned:   pinned,
		platform: wanted,
		registry: newRegistry(ref.Context(), o.Insecure, o.Client),
		limits:   o.Limits,
	}, nil
}

// Resolve asks the registry with one HEAD request what the tag points at. A digest is not asked for.
func (f *Fetcher) Resolve(ctx context.Context) (fetch.Resolved, error) {
	if f.pinned {
		return fetch.Resolved{Digest: f.ref.Identifier(), Pinned: true}, nil
	}
	digest, err := f.registry.resolve(ctx, f.ref.Identifier())
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	return fetch.Resolved{Reference: f.ref.Identifier(), Digest: digest.String()}, nil
}

// Fetch unpacks the image with the digest of r.
func (f *Fetcher) Fetch(ctx context.Context, r fetch.Resolved, tree *fetch.Tree) (fetch.Resolved, error) {
	digest, err := fetch.ParseDigest(r.Digest)
	if err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	if err := f.fetch(ctx, digest, tree); err != nil {
		return fetch.Resolved{}, f.explain(err)
	}
	return r, nil
}

func (f *Fetcher) fetch(ctx context.Context, digest fetch.Digest, tree *fetch.Tree) error {
	layers, err := f.layers(ctx, digest)
	if err != nil {
		return err
	}
	for number, layer := range layers {
		if err := f.unpack(ctx, layer, tree); err != nil {
			return fetch.Describe(err, "layer %d of %d", number+1, len(layers))
		}
	}
	return nil
}

// layers returns the layers of the image with a digest, which may be that of an index.
func (f *Fetcher) layers(ctx context.Context, digest fetch.Digest) ([]v1.Descriptor, error) {
	document, err := f.registry.manifest(ctx, digest, unknownSize)
	if err != nil {
		return nil, err
	}
	if document.isIndex() {
		child, err := f.platform.choose(document.Manifests)
		if err != nil {
			return nil, err
		}
		if document, err = f.child(ctx, child); err != nil {
			return nil, err
		}
	}
	return document.Layers, checkLayers(document.Layers, f.limits)
}

func (f *Fetcher) child(ctx context.Context, child v1.Descriptor) (document, error) {
	digest, err := fetch.ParseDigest(child.Digest.String())
	if err != nil {
		return document{}, err
	}
	found, err := f.registry.manifest(ctx, digest, child.Size)
	if err == nil && found.isIndex() {
		err = fetch.Errorf(fetch.InvalidContent, "the index holds another index where an image should be")
	}
	return found, fetch.Describe(err, "image %s of the index", digest)
}

// unpack streams one layer into the tree.
func (f *Fetcher) unpack(ctx context.Context, layer v1.Descriptor, tree *fetch.Tree) error {
	digest, err := fetch.ParseDigest(layer.Digest.String())
	if err != nil {
		return err
	}
	packed, err := compression(layer)
	if err != nil {
		return err
	}
	body, err := f.registry.blob(ctx, digest, layer.Size)
	if err != nil {
		return err
	}
	err = tree.UntarLayer(ctx, digest.Verify(tree.Metered(body), layer.Size), packed)
	return errors.Join(err, body.Close())
}

func (f *Fetcher) explain(err error) error {
	return hints.Explain(err, "image %s", f.ref)
}
