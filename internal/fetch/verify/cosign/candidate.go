// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// Where bundles lie, and what registries say about them.
const (
	bundleType          = "application/vnd.dev.sigstore.bundle.v0.3+json"
	emptyType           = "application/vnd.oci.empty.v1+json"
	predicateAnnotation = "dev.sigstore.bundle.predicateType"
)

// mostTagged is how many signatures of the older form are looked at, so that some are left for the newer one.
const mostTagged = verify.Candidates / 2

// candidate reads one signature, without its log entries and timestamps if they are not wanted. Errors for which
// verify.Interrupts is false are about this signature only.
type candidate func(ctx context.Context, unlogged bool) (signed, error)

// errOther is for what refers to the subject and is something else than a signature.
var errOther = fetch.Errorf(fetch.InvalidContent, "it is no signature")

// manifest is what is read of a manifest.
type manifest struct {
	Layers []v1.Descriptor `json:"layers"`
}

func readManifest(ctx context.Context, registry image.Registry, reference string) (manifest, error) {
	data, _, err := registry.Manifest(ctx, reference)
	if err != nil {
		return manifest{}, err
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return manifest{}, fetch.Errorf(fetch.InvalidContent, "the manifest of the signature is malformed")
	}
	return m, nil
}

// tagged returns the signatures of the older form: layers of an image with a tag that is made of the digest. cosign
// adds layers at the end, so the newest come first.
func tagged(ctx context.Context, s image.Subject, limit int, attempts *verify.Attempts) ([]candidate, error) {
	m, err := readManifest(ctx, s.Registry, strings.Replace(s.Digest.String(), ":", "-", 1)+".sig")
	if fetch.ReasonOf(err) == fetch.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	limit = min(limit, mostTagged)
	attempts.Skipped(len(m.Layers) - limit)
	var found []candidate
	for _, layer := range slices.Backward(m.Layers) {
		if len(found) == limit {
			break
		}
		found = append(found, func(ctx context.Context, unlogged bool) (signed, error) {
			payload, err := s.Registry.Blob(ctx, layer, verify.DocumentBytes)
			if err != nil {
				return signed{}, err
			}
			return simple(payload, layer.Annotations, s.Digest, unlogged)
		})
	}
	return found, nil
}

// referring returns the signatures of the newer form: bundles that refer to the subject, in the order of their digests.
func referring(ctx context.Context, s image.Subject, limit int, attempts *verify.Attempts) ([]candidate, error) {
	referrers, err := bundles(ctx, s)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(referrers, func(a, b v1.Descriptor) int { return cmp.Compare(a.Digest.String(), b.Digest.String()) })
	attempts.Skipped(len(referrers) - limit)
	var found []candidate
	for _, d := range referrers[:min(len(referrers), limit)] {
		found = append(found, func(ctx context.Context, unlogged bool) (signed, error) {
			return referrer(ctx, s.Registry, d, unlogged)
		})
	}
	return found, nil
}

// bundles lists what may be a bundle. Some registries do not know the type of an artifact where it is written since
// version 1.1 of the specification, and state the empty one of its configuration.
func bundles(ctx context.Context, s image.Subject) ([]v1.Descriptor, error) {
	for _, artifactType := range []string{bundleType, ""} {
		referrers, err := s.Registry.Referrers(ctx, s.Digest, artifactType)
		if err != nil {
			return nil, err
		}
		referrers = slices.DeleteFunc(slices.Clone(referrers), func(d v1.Descriptor) bool { return !maySign(d) })
		if len(referrers) > 0 {
			return referrers, nil
		}
	}
	return nil, nil
}

// maySign passes over what says itself that it is something else: attestations may be many.
func maySign(d v1.Descriptor) bool {
	predicate := d.Annotations[predicateAnnotation]
	return slices.Contains([]string{bundleType, emptyType, ""}, d.ArtifactType) && slices.Contains([]string{signPredicate, ""}, predicate)
}

// referrer reads the bundle that a manifest holds.
func referrer(ctx context.Context, registry image.Registry, d v1.Descriptor, unlogged bool) (signed, error) {
	if d.Size > verify.ManifestBytes {
		return signed{}, fetch.Errorf(fetch.LimitExceeded, "the manifest of the signature has %d bytes: %d are the limit", d.Size, verify.ManifestBytes)
	}
	m, err := readManifest(ctx, registry, d.Digest.String())
	if err != nil {
		return signed{}, err
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != bundleType {
		return signed{}, errOther
	}
	data, err := registry.Blob(ctx, m.Layers[0], verify.DocumentBytes)
	if err != nil {
		return signed{}, err
	}
	return parseBundle(data, unlogged)
}
