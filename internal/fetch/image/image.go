// SPDX-License-Identifier: Apache-2.0

// Package image fetches the files of a container image or OCI artifact from a registry: all layers, flattened.
package image

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/satchel-dev/satchel/internal/concurrentio"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
	"github.com/satchel-dev/satchel/internal/fetch/versions"
)

// Options describes one image.
type Options struct {
	// Ref is the image with a tag or digest; a digest wins over a tag, without both the tag is latest.
	Ref string
	// SemVer is a range of versions, of which the newest tag is taken. Ref then has neither tag nor digest.
	SemVer string
	// Platform is the child of an index to take, "os/architecture[/variant]". When it is empty that is linux/amd64,
	// or the only image that there is.
	Platform string
	// Insecure speaks plain HTTP; the caller has checked that the host may be spoken to in that way, and Client
	// checks it again.
	Insecure bool
	// Keychain has the login; without one requests to the registry are anonymous.
	Keychain registryauth.Keychain
	// Verify decide whether the image may be used: each of them has to accept it. Without one it is not verified.
	Verify []Verifier
	// Client decides what is reached.
	Client *http.Client
	// Limits bounds what is read.
	Limits fetch.Limits
	// Only restricts what is unpacked; nil for everything.
	Only *Only
	// Mirrors are tried in order before the registry that Ref names.
	Mirrors []Mirror
	// MirrorsOnly never contacts the registry that Ref names.
	MirrorsOnly bool
}

// Mirror is another repository with the same images.
type Mirror struct {
	// Repository is the host and the path, without tag and digest.
	Repository string
	// Tags asks it also what tags stand for; otherwise it is asked for digests only.
	Tags bool
	// Insecure, Keychain and Client are as for the image itself.
	Insecure bool
	Keychain registryauth.Keychain
	Client   *http.Client
}

// Fetcher is one image.
type Fetcher struct {
	text     string // the reference as it was given
	tag      string // or digest, or "" when a range decides
	pinned   bool
	versions versions.Range
	platform platform
	// named is the repository in the reference: signatures are judged by its name.
	named  string
	places []place
	verify []Verifier
	limits fetch.Limits
	only   *Only
}

// New returns the fetcher of an image, without asking the registry yet.
func New(o Options) (*Fetcher, error) {
	if o.Client == nil {
		return nil, errors.New("an image fetcher needs an HTTP client")
	}
	wanted, err := parsePlatform(o.Platform)
	if err != nil {
		return nil, fetch.Describe(err, "image %s", fetch.Quote(o.Ref))
	}
	f := &Fetcher{text: o.Ref, platform: wanted, verify: o.Verify, limits: o.Limits, only: o.Only}
	repository, err := f.parse(o)
	if err != nil {
		return nil, err
	}
	f.named = repository.Name()
	f.places, err = newPlaces(repository, o)
	return f, err
}

// parse reads what is wanted of which repository.
func (f *Fetcher) parse(o Options) (name.Repository, error) {
	if o.SemVer == "" {
		ref, err := parseReference(o.Ref, o.Insecure)
		if err != nil {
			return name.Repository{}, err
		}
		f.tag = ref.Identifier()
		_, f.pinned = ref.(name.Digest)
		return ref.Context(), nil
	}
	repository, err := parseRepository(o.Ref, o.Insecure)
	if err != nil {
		return repository, err
	}
	f.versions, err = versions.Parse(o.SemVer)
	return repository, fetch.Describe(err, "image %s", o.Ref)
}

// Resolve asks the registry with one HEAD request what the tag points at, and with a range first for its tags. A digest
// is not asked for.
func (f *Fetcher) Resolve(ctx context.Context) (r fetch.Resolved, err error) {
	if f.pinned {
		return fetch.Resolved{Digest: f.tag, Pinned: true}, nil
	}
	asked := f.placesForTags()
	if len(asked) == 0 {
		return fetch.Resolved{}, fetch.Errorf(fetch.Refused, "image %s: a tag is not asked of its mirrors, and its registry is not contacted: name a digest, or let the mirrors resolve tags", f.text)
	}
	err = f.inTurn(ctx, asked, func(p place) (err error) {
		r, err = f.resolveAt(ctx, p)
		return err
	})
	return r, err
}

// resolveAt resolves the tag, or the range, at one place.
func (f *Fetcher) resolveAt(ctx context.Context, p place) (fetch.Resolved, error) {
	tag := f.tag
	if tag == "" {
		newest, err := p.newest(ctx, f.versions)
		if err != nil {
			return fetch.Resolved{}, err
		}
		tag = newest
	}
	digest, err := p.resolve(ctx, tag)
	if err != nil {
		return fetch.Resolved{}, err
	}
	return fetch.Resolved{Reference: tag, Digest: digest.String(), Via: p.via}, nil
}

// Fetch verifies and unpacks the image with the digest of r, from the first place that gives all of it.
func (f *Fetcher) Fetch(ctx context.Context, r fetch.Resolved, tree *fetch.Tree) (done fetch.Resolved, err error) {
	err = f.inTurn(ctx, f.places, func(p place) error {
		top, accepted, err := f.open(ctx, p, r)
		if err == nil {
			err = f.unpackAll(ctx, p, top, tree)
		}
		if err != nil {
			return errors.Join(err, tree.Clear())
		}
		done = accepted
		return nil
	})
	return done, err
}

// Verify verifies the image with the digest of r once more, as Fetch does, without reading its layers.
func (f *Fetcher) Verify(ctx context.Context, r fetch.Resolved) (done fetch.Resolved, err error) {
	err = f.inTurn(ctx, f.places, func(p place) (err error) {
		_, done, err = f.open(ctx, p, r)
		return err
	})
	return done, err
}

// open reads the manifest or index that r names at a place and has it verified. Everything else follows from its digests.
func (f *Fetcher) open(ctx context.Context, p place, r fetch.Resolved) (document, fetch.Resolved, error) {
	r.VerifiedBy = ""
	r.Signature = ""
	r.Via = p.via
	digest, err := fetch.ParseDigest(r.Digest)
	if err != nil {
		return document{}, r, err
	}
	top, size, err := p.manifest(ctx, digest, unknownSize)
	if err != nil || len(f.verify) == 0 {
		return top, r, err
	}
	r.VerifiedBy, r.Signature, err = f.verified(ctx, p, digest, kept{Repository: f.named, MediaType: string(top.MediaType), Size: size})
	if err != nil {
		err = decidedError{fetch.Describe(err, "verifying %s", digest)}
	}
	return top, r, err
}

// unpackAll writes all layers into the tree, the lowest first.
func (f *Fetcher) unpackAll(ctx context.Context, p place, top document, tree *fetch.Tree) error {
	image, layers, err := f.layers(ctx, p, top)
	if err != nil {
		return err
	}
	if tree, err = f.restrict(ctx, p, image, tree); err != nil {
		return err
	}
	for number, layer := range layers {
		if err := f.unpack(ctx, p, layer, tree); err != nil {
			return fetch.Describe(err, "layer %d of %d", number+1, len(layers))
		}
	}
	return nil
}

// layers returns the image, which may be one of an index, and its layers.
func (f *Fetcher) layers(ctx context.Context, p place, image document) (document, []v1.Descriptor, error) {
	if image.isIndex() {
		child, err := f.platform.choose(image.Manifests)
		if err != nil {
			return image, nil, err
		}
		if image, err = f.child(ctx, p, child); err != nil {
			return image, nil, err
		}
	}
	files := slices.DeleteFunc(image.Layers, func(layer v1.Descriptor) bool { return layer.MediaType == helmProvenance })
	return image, files, checkLayers(files, f.limits)
}

func (f *Fetcher) child(ctx context.Context, p place, child v1.Descriptor) (document, error) {
	digest, err := fetch.ParseDigest(child.Digest.String())
	if err != nil {
		return document{}, err
	}
	found, _, err := p.manifest(ctx, digest, child.Size)
	if err == nil && found.isIndex() {
		err = fetch.Errorf(fetch.InvalidContent, "the index holds another index where an image should be")
	}
	return found, fetch.Describe(err, "image %s of the index", digest)
}

// unpack streams one layer into the tree. A large one is downloaded and hashed while it is decompressed.
func (f *Fetcher) unpack(ctx context.Context, p place, layer v1.Descriptor, tree *fetch.Tree) error {
	digest, err := fetch.ParseDigest(layer.Digest.String())
	if err != nil {
		return err
	}
	packed, err := compression(layer)
	if err != nil {
		return err
	}
	body, err := p.blob(ctx, digest, layer.Size)
	if err != nil {
		return err
	}
	ahead := concurrentio.NewReader(digest.Verify(tree.Metered(body), layer.Size))
	err = tree.UntarLayer(ctx, ahead, packed)
	err = errors.Join(err, body.Close()) // which ends a read of it that is under way
	return errors.Join(err, ahead.Close())
}

// Hints tell what a user may do: without a keychain, with a login, and with a keychain that has none.
var (
	openHints = fetch.Hints{
		fetch.NotFound:       "check the tag, or that the repository is public",
		fetch.Unauthorized:   "check the name, or that the repository is public",
		fetch.DigestMismatch: "the registry serves other bytes than it should",
	}
	loginHints = fetch.Hints{
		fetch.NotFound:       "check the tag, and that the login may pull from the repository",
		fetch.Unauthorized:   "check the login, and that it may pull from the repository",
		fetch.DigestMismatch: openHints[fetch.DigestMismatch],
	}
	anonymousHints = fetch.Hints{
		fetch.NotFound:       "check the tag, or add a login for this registry to the pull secret, which has none",
		fetch.Unauthorized:   "add a login for this registry to the pull secret, which has none",
		fetch.DigestMismatch: openHints[fetch.DigestMismatch],
	}
)

// tlsHints tell what a user may do about TLS. Insecure is plain HTTP: certificates are always verified.
var tlsHints = fetch.TLSHints{
	PlainHTTP: "set insecure to use plain HTTP, which the source controller's --insecure-hosts has to permit for the host",
	Untrusted: "name a Secret with the CA certificate as ca.crt in certSecretRef",
}

// explain adds to an error of a place what a user may do.
func (p place) explain(err error, format string, args ...any) error {
	err = tlsHints.Explain(err)
	hints := openHints
	if login, asked := p.session.Login(); !login.Empty() {
		hints = loginHints
	} else if asked {
		hints = anonymousHints
	}
	return hints.Explain(err, format, args...)
}
