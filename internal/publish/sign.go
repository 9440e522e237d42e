// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// A signature as cosign stores it: a layer of the image with the tag "sha256-<hex>.sig".
const (
	signatureLayerType  types.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation string          = "dev.cosignproject.cosign/signature"
	signatureSuffix     string          = ".sig"
)

// Sign signs an image by its digest and stores the signature beside it, as cosign sign --key does. It returns false if a
// signature of this key exists already.
func (r Registry) Sign(ctx context.Context, image name.Digest, key *Key) (bool, error) {
	at := image.Context().Tag(strings.Replace(image.DigestStr(), ":", "-", 1) + signatureSuffix)
	signatures, err := r.signatures(ctx, at)
	if err != nil {
		return false, err
	}
	content, err := payload.Cosign{Image: image}.MarshalJSON()
	if err != nil {
		return false, fmt.Errorf("signing %s: %w", image, err)
	}
	if signed, err := key.signed(signatures, content); signed || err != nil {
		return false, err
	}
	raw, err := key.signer.SignMessage(bytes.NewReader(content))
	if err != nil {
		return false, fmt.Errorf("signing %s: %w", image, err)
	}
	signatures, err = mutate.Append(signatures, mutate.Addendum{
		Layer:       static.NewLayer(content, signatureLayerType),
		Annotations: map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(raw)},
	})
	if err != nil {
		return false, fmt.Errorf("signing %s: %w", image, err)
	}
	return true, r.explain(ctx, at, "storing the signature", remote.Write(at, signatures, r.options(ctx)...))
}

// signatures returns what is stored at a tag, or an image to store signatures in.
func (r Registry) signatures(ctx context.Context, at name.Tag) (v1.Image, error) {
	image, err := remote.Image(at, r.options(ctx)...)
	var answer *transport.Error
	switch {
	case err == nil:
		return image, nil
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), nil
	}
	return nil, r.explain(ctx, at, "looking for signatures", err)
}

// mostSignatures bounds the signatures of one image; a verifier reads no more.
const mostSignatures = 50

// signed tells whether one of the signatures is of this key and of this content.
func (k *Key) signed(signatures v1.Image, content []byte) (bool, error) {
	manifest, err := signatures.Manifest()
	if err != nil {
		return false, fmt.Errorf("reading the signatures: %w", err)
	}
	if len(manifest.Layers) >= mostSignatures {
		return false, fmt.Errorf("the image has %d signatures already, and no more are read: delete unused ones, as with cosign clean", len(manifest.Layers))
	}
	wanted, _, err := v1.SHA256(bytes.NewReader(content))
	if err != nil {
		return false, fmt.Errorf("reading the signatures: %w", err)
	}
	for _, layer := range manifest.Layers {
		raw, err := base64.StdEncoding.DecodeString(layer.Annotations[signatureAnnotation])
		if err == nil && layer.Digest == wanted && k.signer.VerifySignature(bytes.NewReader(raw), bytes.NewReader(content)) == nil {
			return true, nil
		}
	}
	return false, nil
}
