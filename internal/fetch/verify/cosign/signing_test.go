// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"context"
	"encoding/base64"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/sigstore/cosign/v3/pkg/oci"
	"github.com/sigstore/cosign/v3/pkg/oci/mutate"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/cosign/v3/pkg/oci/static"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore/pkg/signature/payload"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// signingKey is a private key that cosign could have.
type signingKey struct{ *sign.EphemeralKeypair }

func newSigningKey(t testing.TB, algorithm protocommon.PublicKeyDetails) signingKey {
	t.Helper()
	pair, err := sign.NewEphemeralKeypair(&sign.EphemeralKeypairOptions{Algorithm: algorithm})
	if err != nil {
		t.Fatal(err)
	}
	return signingKey{pair}
}

func ecdsaKey(t testing.TB) signingKey {
	t.Helper()
	return newSigningKey(t, protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256)
}

// pem is the public key as cosign writes it.
func (k signingKey) pem(t testing.TB) []byte {
	t.Helper()
	text, err := k.GetPublicKeyPem()
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

func (k signingKey) sign(t testing.TB, message []byte) []byte {
	t.Helper()
	raw, _, err := k.SignData(context.Background(), message)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// claim is the payload of a signature of the older form.
func claim(t testing.TB, ref name.Digest) []byte {
	t.Helper()
	raw, err := payload.Cosign{Image: ref}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// tag signs an image in the older form.
func (k signingKey) tag(t testing.TB, ref name.Digest) {
	attach(t, ref, claim(t, ref), k.sign(t, claim(t, ref)))
}

// attach stores a signature of the older form, as cosign does.
func attach(t testing.TB, ref name.Digest, content, raw []byte, options ...static.Option) {
	t.Helper()
	layer, err := static.NewSignature(content, base64.StdEncoding.EncodeToString(raw), options...)
	if err != nil {
		t.Fatal(err)
	}
	entity, err := ociremote.SignedEntity(ref)
	if err != nil {
		t.Fatal(err)
	}
	attachTo(t, ref, entity, layer)
}

func attachTo(t testing.TB, ref name.Digest, entity oci.SignedEntity, layer oci.Signature) {
	t.Helper()
	changed, err := mutate.AttachSignatureToEntity(entity, layer)
	if err != nil {
		t.Fatal(err)
	}
	if err := ociremote.WriteSignatures(ref.Repository, changed); err != nil {
		t.Fatal(err)
	}
}

// statement is what cosign signs for an image in the newer form.
func statement(t testing.TB, digest, predicate string) []byte {
	t.Helper()
	const algorithm = "sha256"
	raw, err := protojson.Marshal(&intoto.Statement{
		Type: intoto.StatementTypeUri, PredicateType: predicate, Predicate: &structpb.Struct{},
		Subject: []*intoto.ResourceDescriptor{{Digest: map[string]string{algorithm: digest[len(algorithm)+1:]}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// bundle makes a signature of the newer form.
func (k signingKey) bundle(t testing.TB, content sign.Content, options sign.BundleOptions) *protobundle.Bundle {
	t.Helper()
	made, err := sign.Bundle(content, k, options)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// envelope makes a signature of the newer form that states something about a digest.
func (k signingKey) envelope(t testing.TB, digest, predicate string) *protobundle.Bundle {
	t.Helper()
	return k.bundle(t, &sign.DSSEData{Data: statement(t, digest, predicate), PayloadType: "application/vnd.in-toto+json"}, sign.BundleOptions{})
}

func marshal(t testing.TB, made *protobundle.Bundle) []byte {
	t.Helper()
	raw, err := protojson.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// refer stores a bundle that refers to an image, as cosign does.
func refer(t testing.TB, ref name.Digest, raw []byte, predicate string) {
	t.Helper()
	if err := ociremote.WriteAttestationNewBundleFormat(ref, raw, predicate); err != nil {
		t.Fatal(err)
	}
}

// refer signs an image in the newer form.
func (k signingKey) refer(t testing.TB, ref name.Digest) {
	t.Helper()
	refer(t, ref, marshal(t, k.envelope(t, ref.DigestStr(), signPredicate)), signPredicate)
}

// keys is a Secret with keys.
func keys(t testing.TB, pairs ...signingKey) map[string][]byte {
	t.Helper()
	entries := map[string][]byte{}
	for i, pair := range pairs {
		entries[string(rune('a'+i))+KeySuffix] = pair.pem(t)
	}
	return entries
}
