// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// archive is what is signed.
var archive = []byte("the bytes of an archive")

func bare(raw []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(raw)) }

func TestM14Blobs(t *testing.T) {
	s := newStandIn(t)
	pair, wrong := ecdsaKey(t), ecdsaKey(t)
	rsa := newSigningKey(t, protocommon.PublicKeyDetails_PKIX_RSA_PKCS1V15_2048_SHA256)
	p384 := newSigningKey(t, protocommon.PublicKeyDetails_PKIX_ECDSA_P384_SHA_384)
	edwards := newSigningKey(t, protocommon.PublicKeyDetails_PKIX_ED25519)
	plain := func(pair signingKey, content []byte) *protobundle.Bundle {
		return pair.bundle(t, &sign.PlainData{Data: content}, sign.BundleOptions{})
	}
	byKeys, byJane := Options{Keys: keys(t, pair, rsa)}, Options{Identities: []Identity{isJane}, TrustedRoot: s.trust(t)}
	ofJane := s.keyless(t, &sign.PlainData{Data: archive}, jane, time.Now())
	ofAction := s.keyless(t, &sign.PlainData{Data: archive}, action, time.Now())
	unlogged := s.keyless(t, &sign.PlainData{Data: archive}, jane, time.Now())
	unlogged.VerificationMaterial.TlogEntries = nil
	cases := map[string]struct {
		reason   string
		o        Options
		document []byte
		want     string // who, or a part of the error
	}{
		"Bare":         {"cosign sign-blob --output-signature", byKeys, bare(pair.sign(t, archive)), "cosign key a.pub"},
		"BareLine":     {"with a line end", byKeys, append(bare(pair.sign(t, archive)), '\n'), "cosign key a.pub"},
		"BareRSA":      {"the second key", byKeys, bare(rsa.sign(t, archive)), "cosign key b.pub"},
		"Bundle":       {"cosign sign-blob --bundle", byKeys, marshal(t, plain(pair, archive)), "cosign key a.pub"},
		"Identity":     {"keyless", byJane, marshal(t, ofJane), "cosign jane@acme.org (https://login.acme.org)"},
		"BareWrong":    {"another key", byKeys, bare(wrong.sign(t, archive)), "another key, or of something else"},
		"BareOther":    {"of another archive", byKeys, bare(pair.sign(t, []byte("x"))), "another key, or of something else"},
		"BundleWrong":  {"another key", byKeys, marshal(t, plain(wrong, archive)), "another key, or of something else"},
		"BundleOther":  {"of another archive", byKeys, marshal(t, plain(pair, []byte("x"))), "does not match"},
		"OtherSigner":  {"another identity", byJane, marshal(t, ofAction), "no matching CertificateIdentity"},
		"Unlogged":     {"in no log", byJane, marshal(t, unlogged), "log"},
		"BareForJane":  {"a bare signature names no signer", byJane, bare(pair.sign(t, archive)), "log"},
		"KeyForJane":   {"a key is no identity", byJane, marshal(t, plain(pair, archive)), "log"},
		"JaneForKeys":  {"a certificate is not one of the keys", byKeys, marshal(t, ofJane), "not certificate"},
		"P384":         {"its hash is another one", Options{Keys: keys(t, p384)}, bare(p384.sign(t, archive)), "another key, or of something else"},
		"Edwards":      {"it signs all of the content", Options{Keys: keys(t, edwards)}, bare(edwards.sign(t, archive)), "Ed25519 signs the whole content"},
		"EdwardsEmpty": {"the signature of nothing, which the library would verify", Options{Keys: keys(t, edwards)}, bare(edwards.sign(t, nil)), "Ed25519 signs the whole content"},
		"Empty":        {"an empty file", byKeys, nil, "neither"},
		"Page":         {"a page of a web server", byKeys, []byte("<html>"), "neither"},
		"NoBundle":     {"another document", byKeys, []byte(`{"base64Signature":"x"}`), "--new-bundle-format"},
		"NoMaterial":   {"an empty document", byKeys, []byte(`{}`), "malformed"},
		"Long":         {"too long", byKeys, []byte(`{"a":"` + strings.Repeat("x", 300<<10) + `"}`), "more than"},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			by, err := verifier(t, tc.o).VerifyBlob(context.Background(), fetch.SHA256(archive), tc.document)
			if strings.HasPrefix(tc.want, "cosign ") {
				if err != nil || by != tc.want {
					t.Errorf("%s: %q, %v", tc.reason, by, err)
				}
				return
			}
			if by != "" || fetch.ReasonOf(err) != fetch.Unverified || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %q, %v", tc.reason, by, err)
			}
		})
	}
	long, err := fetch.ParseDigest("sha512:" + strings.Repeat("a", 128))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verifier(t, byKeys).VerifyBlob(context.Background(), long, bare(pair.sign(t, archive))); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("another digest: %v", err)
	}
}
