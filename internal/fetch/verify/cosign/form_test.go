// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/cosign/v3/pkg/oci/static"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/images"
)

const intotoType = "application/vnd.in-toto+json"

// TestKeysOfAllKinds: what cosign can sign an image with.
func TestKeysOfAllKinds(t *testing.T) {
	for title, algorithm := range map[string]protocommon.PublicKeyDetails{
		"P256": protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256,
		"P384": protocommon.PublicKeyDetails_PKIX_ECDSA_P384_SHA_384,
		"P521": protocommon.PublicKeyDetails_PKIX_ECDSA_P521_SHA_512,
		//nolint:staticcheck // older cosign signs in this way, with any key
		"P384SHA256": protocommon.PublicKeyDetails_PKIX_ECDSA_P384_SHA_256,
		//nolint:staticcheck // likewise
		"P521SHA256": protocommon.PublicKeyDetails_PKIX_ECDSA_P521_SHA_256,
		"RSA2048":    protocommon.PublicKeyDetails_PKIX_RSA_PKCS1V15_2048_SHA256,
		"RSA4096":    protocommon.PublicKeyDetails_PKIX_RSA_PKCS1V15_4096_SHA256,
		"Ed25519":    protocommon.PublicKeyDetails_PKIX_ED25519,
	} {
		pair := newSigningKey(t, algorithm)
		for form, sign := range forms {
			t.Run(title+form, func(t *testing.T) {
				r := images.New(t, true)
				ref := r.Image(t)
				sign(pair, t, ref)
				if by, err := images.Verified(t, ref.String(), verifier(t, Options{Keys: keys(t, pair)})); by != "cosign key a.pub" {
					t.Errorf("%q, %v", by, err)
				}
				if by, err := images.Verified(t, ref.String(), verifier(t, Options{Keys: keys(t, newSigningKey(t, algorithm))})); fetch.ReasonOf(err) != fetch.Unverified {
					t.Errorf("another key of the kind: %q, %v", by, err)
				}
			})
		}
	}
}

// TestM14Claims: the right key signed something, but not that this image may be used.
func TestM14Claims(t *testing.T) {
	pair := ecdsaKey(t)
	text := func(digest, kind string) []byte {
		return []byte(`{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":"` + digest + `"},"type":"` + kind + `"}}`)
	}
	tagged := func(t *testing.T, ref name.Digest, content []byte) { attach(t, ref, content, pair.sign(t, content)) }
	stated := func(t *testing.T, ref name.Digest, content sign.Content) {
		refer(t, ref, marshal(t, pair.bundle(t, content, sign.BundleOptions{})), "")
	}
	other := "sha256:" + strings.Repeat("a", 64)
	cases := map[string]struct {
		reason string
		sign   func(t *testing.T, r *images.Repository, ref name.Digest)
		want   string // of the error; "" accepts it
	}{
		"Claim": {"to see that the rest is right", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			tagged(t, ref, text(ref.DigestStr(), payloadType))
		}, ""},
		"OtherDigest": {"another image", func(t *testing.T, _ *images.Repository, ref name.Digest) { tagged(t, ref, text(other, payloadType)) }, "it signs"},
		"OtherType": {"another kind of claim", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			tagged(t, ref, text(ref.DigestStr(), "atomic container signature"))
		}, "of the type"},
		"NoJSON": {"no claim at all", func(t *testing.T, _ *images.Repository, ref name.Digest) { tagged(t, ref, []byte(ref.DigestStr())) }, "no JSON"},
		"Altered": {"the claim was changed", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			attach(t, ref, text(ref.DigestStr(), payloadType), pair.sign(t, text(other, payloadType)))
		}, "another key, or of something else"},
		"NoSignature": {"an empty signature", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			attach(t, ref, text(ref.DigestStr(), payloadType), nil)
		}, "signature is malformed"},
		"OtherRepository": {"signed under the name of another repository, and copied from there", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			elsewhere, err := name.NewDigest("registry.example.org/team/app@" + ref.DigestStr())
			if err != nil {
				t.Fatal(err)
			}
			tagged(t, ref, claim(t, elsewhere))
		}, ""},
		"Statement": {"to see that the rest is right", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			stated(t, ref, &sign.DSSEData{Data: statement(t, ref.DigestStr(), signPredicate), PayloadType: intotoType})
		}, ""},
		"OtherStatement": {"about another image", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			stated(t, ref, &sign.DSSEData{Data: statement(t, other, signPredicate), PayloadType: intotoType})
		}, "does not match"},
		"Attestation": {"a report on vulnerabilities is no approval", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			stated(t, ref, &sign.DSSEData{Data: statement(t, ref.DigestStr(), "https://cosign.sigstore.dev/attestation/vuln/v1"), PayloadType: intotoType})
		}, "which is no signature"},
		"OtherPayloadType": {"a statement of another kind", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			stated(t, ref, &sign.DSSEData{Data: statement(t, ref.DigestStr(), signPredicate), PayloadType: "text/plain"})
		}, "statement"},
		"NoStatement": {"no statement at all", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			stated(t, ref, &sign.DSSEData{Data: []byte("{}"), PayloadType: intotoType})
		}, "does not match"},
		"TwoSigners": {"which one counts: the format allows for one", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			made, other := pair.envelope(t, ref.DigestStr(), signPredicate), ecdsaKey(t).envelope(t, ref.DigestStr(), signPredicate)
			made.GetDsseEnvelope().Signatures = append(other.GetDsseEnvelope().Signatures, made.GetDsseEnvelope().Signatures...)
			refer(t, ref, marshal(t, made), signPredicate)
		}, "signature"},
		"NoSigner": {"an unsigned statement", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			made := pair.envelope(t, ref.DigestStr(), signPredicate)
			made.GetDsseEnvelope().Signatures = nil
			refer(t, ref, marshal(t, made), signPredicate)
		}, "signature"},
		"AlteredStatement": {"the statement was changed", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			made := pair.envelope(t, other, signPredicate)
			made.GetDsseEnvelope().Payload = statement(t, ref.DigestStr(), signPredicate)
			refer(t, ref, marshal(t, made), signPredicate)
		}, "signature"},
		"OtherAlgorithm": {"a digest of another kind with the same digits", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			text := strings.Replace(string(statement(t, ref.DigestStr(), signPredicate)), "sha256", "md5", 1)
			stated(t, ref, &sign.DSSEData{Data: []byte(text), PayloadType: intotoType})
		}, "digest"},
		"ClaimOfMany": {"of two digests the last one counts, for the signer and the verifier", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			text := strings.Replace(string(text(ref.DigestStr(), payloadType)), `"image":{`, `"image":{"docker-manifest-digest":"`+ref.DigestStr()+`"},"image":{`, 1)
			tagged(t, ref, []byte(strings.Replace(text, `{"docker-manifest-digest":"`+ref.DigestStr()+`"},"type"`, `{"docker-manifest-digest":"`+other+`"},"type"`, 1)))
		}, "it signs"},
		"NoDigest": {"a claim about nothing", func(t *testing.T, _ *images.Repository, ref name.Digest) { tagged(t, ref, text("", payloadType)) }, "it signs"},
		"UpperDigest": {"digests are lower case", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			tagged(t, ref, text(strings.ToUpper(ref.DigestStr()), payloadType))
		}, "it signs"},
		"Manifest": {"the manifest itself is signed", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			d, err := remote.Get(ref)
			if err != nil {
				t.Fatal(err)
			}
			stated(t, ref, &sign.PlainData{Data: d.Manifest})
		}, ""},
		"OtherContent": {"something else is signed", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			stated(t, ref, &sign.PlainData{Data: []byte("x")})
		}, "does not match digest"},
		"ForgedDigest": {"a bundle may say any digest", func(t *testing.T, _ *images.Repository, ref name.Digest) {
			made := pair.bundle(t, &sign.PlainData{Data: []byte("x")}, sign.BundleOptions{})
			raw := digestBytes(t, ref.DigestStr())
			made.GetMessageSignature().MessageDigest.Digest = raw
			refer(t, ref, marshal(t, made), "")
		}, "another key, or of something else"},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			r := images.New(t, true)
			ref := r.Image(t)
			tc.sign(t, r, ref)
			by, err := images.Verified(t, ref.String(), verifier(t, Options{Keys: keys(t, pair)}))
			if tc.want == "" {
				if by != "cosign key a.pub" {
					t.Errorf("%s: %q, %v", tc.reason, by, err)
				}
				return
			}
			if fetch.ReasonOf(err) != fetch.Unverified || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %q, %v", tc.reason, by, err)
			}
		})
	}
}

func digestBytes(t testing.TB, text string) []byte {
	t.Helper()
	var raw [sha256.Size]byte
	if _, err := hex.Decode(raw[:], []byte(text[len("sha256:"):])); err != nil {
		t.Fatal(err)
	}
	return raw[:]
}

// TestM14AttestationsAreNotCandidates: scanners attach many of them.
func TestM14AttestationsAreNotCandidates(t *testing.T) {
	pair := ecdsaKey(t)
	r := images.New(t, true)
	ref := r.Image(t)
	for i := range 60 {
		kind := "https://example.org/scan/" + string(rune('a'+i%26))
		made := pair.envelope(t, ref.DigestStr(), kind)
		made.VerificationMaterial.GetPublicKey().Hint = strings.Repeat("x", i+1)
		refer(t, ref, marshal(t, made), kind)
	}
	pair.refer(t, ref)
	r.Alter(nil)
	if by, err := images.Verified(t, ref.String(), verifier(t, Options{Keys: keys(t, pair)})); by != "cosign key a.pub" {
		t.Errorf("%q, %v", by, err)
	}
	if got := r.Seen(); len(got) > 8 {
		t.Errorf("%d requests: %q", len(got), got)
	}
}

// TestM14SwappedTag: what was verified is what is fetched, whatever the tag points at meanwhile.
func TestM14SwappedTag(t *testing.T) {
	pair := ecdsaKey(t)
	r := images.New(t, true)
	first := r.Image(t)
	pair.tag(t, first)
	f := images.Fetcher(t, r.Tag("v1").String(), verifier(t, Options{Keys: keys(t, pair)}))
	ctx := context.Background()
	resolved, err := f.Resolve(ctx)
	if err != nil || resolved.Digest != first.DigestStr() {
		t.Fatalf("%+v, %v", resolved, err)
	}
	second := r.Image(t) // unsigned, under the same tag
	r.Alter(nil)
	resolved, err = f.Fetch(ctx, resolved, newTree(t))
	if err != nil || resolved.VerifiedBy != "cosign key a.pub" || resolved.Digest != first.DigestStr() {
		t.Errorf("%+v, %v", resolved, err)
	}
	for _, request := range r.Seen() {
		if strings.Contains(request, second.DigestStr()) || strings.HasSuffix(request, "/v1") {
			t.Errorf("after verifying %s: %s", first, request)
		}
	}
	if resolved, err = f.Resolve(ctx); err != nil || resolved.Digest != second.DigestStr() {
		t.Fatalf("%+v, %v", resolved, err)
	}
	r.Alter(nil)
	if _, err := f.Fetch(ctx, resolved, newTree(t)); fetch.ReasonOf(err) != fetch.Unverified {
		t.Errorf("got %v", err)
	}
	for _, request := range r.Seen() {
		if strings.Contains(request, "/blobs/") {
			t.Errorf("of an image that is not verified nothing is read: %s", request)
		}
	}
}

func newTree(t *testing.T) *fetch.Tree {
	t.Helper()
	tree, err := fetch.NewTree(t.TempDir(), fetch.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	return tree
}

// TestM14SignedElsewhere: signatures of another repository are not looked at.
func TestM14SignedElsewhere(t *testing.T) {
	pair := ecdsaKey(t)
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	for form, sign := range forms {
		r := images.New(t, true)
		here := r.Push(t, img)
		there, err := name.NewRepository(r.RegistryStr() + "/other/bundle")
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(there.Tag("v1"), img); err != nil {
			t.Fatal(err)
		}
		sign(pair, t, there.Digest(here.DigestStr()))
		if by, err := images.Verified(t, here.String(), verifier(t, Options{Keys: keys(t, pair)})); fetch.ReasonOf(err) != fetch.Unverified {
			t.Errorf("%s: %q, %v", form, by, err)
		}
		if by, err := images.Verified(t, there.Digest(here.DigestStr()).String(), verifier(t, Options{Keys: keys(t, pair)})); by == "" {
			t.Errorf("%s: %v", form, err)
		}
	}
}

// TestKeysWithLog: entries are checked when there is something to check them with.
func TestKeysWithLog(t *testing.T) {
	s := newStandIn(t)
	pair := ecdsaKey(t)
	cases := map[string]struct {
		reason string
		change func(t *testing.T, made *protobundle.Bundle)
		rooted bool // accepted with a trusted root; without one it always is
	}{
		"NoEntry": {"M36: a thief of a key strips the entry", func(*testing.T, *protobundle.Bundle) {}, false},
		"Entry":   {"in a log that is trusted", func(t *testing.T, made *protobundle.Bundle) { s.log(t, made, pair.pem(t), time.Now()) }, true},
		"OtherLog": {"in a log that is not trusted", func(t *testing.T, made *protobundle.Bundle) {
			newStandIn(t).log(t, made, pair.pem(t), time.Now())
		}, false},
		"ForgedTime": {"the log promised another time", func(t *testing.T, made *protobundle.Bundle) {
			s.log(t, made, pair.pem(t), time.Now())
			made.VerificationMaterial.TlogEntries[0].IntegratedTime--
		}, false},
		"OtherEntry": {"of another signature", func(t *testing.T, made *protobundle.Bundle) {
			other := pair.bundle(t, &sign.PlainData{Data: []byte("x")}, sign.BundleOptions{})
			s.log(t, other, pair.pem(t), time.Now())
			made.VerificationMaterial.TlogEntries = other.VerificationMaterial.TlogEntries
		}, false},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			r := images.New(t, true)
			ref := r.Image(t)
			made := pair.envelope(t, ref.DigestStr(), signPredicate)
			tc.change(t, made)
			refer(t, ref, marshal(t, made), signPredicate)
			if by, err := images.Verified(t, ref.String(), verifier(t, Options{Keys: keys(t, pair)})); by == "" {
				t.Errorf("%s, without a root: %v", tc.reason, err)
			}
			by, err := images.Verified(t, ref.String(), verifier(t, Options{Keys: keys(t, pair), TrustedRoot: s.trust(t)}))
			if (err == nil) != tc.rooted || (by != "") != tc.rooted {
				t.Errorf("%s, with a root: %q, %v", tc.reason, by, err)
			}
			if by, err := images.Verified(t, ref.String(), verifier(t, Options{Keys: keys(t, pair), TrustedRoot: s.trust(t), IgnoreLog: true})); by == "" {
				t.Errorf("%s, with a root and ignored logs: %v", tc.reason, err)
			}
		})
	}
}

// TestNewestFirst: many older signatures do not hide the newest one.
func TestNewestFirst(t *testing.T) {
	wrong, right := ecdsaKey(t), ecdsaKey(t)
	r := images.New(t, true)
	ref := r.Image(t)
	layers := make([]string, 0, mostTagged+10)
	for range cap(layers) - 1 {
		layers = append(layers, base64.StdEncoding.EncodeToString(wrong.sign(t, claim(t, ref))))
	}
	pushTagged(t, ref, append(layers, base64.StdEncoding.EncodeToString(right.sign(t, claim(t, ref)))))
	if by, err := images.Verified(t, ref.String(), verifier(t, Options{Keys: keys(t, right)})); by == "" {
		t.Error(err)
	}
	_, err := images.Verified(t, ref.String(), verifier(t, Options{Keys: keys(t, ecdsaKey(t))}))
	if want := "none of 25 signatures is by key a.pub"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "(10 more were not looked at") {
		t.Errorf("got %v, want %s", err, want)
	}
}

// pushTagged stores signatures of one claim in their order.
func pushTagged(t *testing.T, ref name.Digest, signatures []string) {
	t.Helper()
	content := claim(t, ref)
	entity, err := ociremote.SignedEntity(ref)
	if err != nil {
		t.Fatal(err)
	}
	var layers []json.RawMessage
	layer, err := static.NewSignature(content, signatures[0])
	if err != nil {
		t.Fatal(err)
	}
	attachTo(t, ref, entity, layer)
	tag := ref.Tag(strings.Replace(ref.DigestStr(), ":", "-", 1) + ".sig")
	d, err := remote.Get(tag)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	var one []map[string]any
	if err := json.Unmarshal(d.Manifest, &m); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(m["layers"], &one); err != nil {
		t.Fatal(err)
	}
	for _, signature := range signatures {
		one[0]["annotations"] = map[string]string{signatureAnnotation: signature}
		layers = append(layers, encode(one[0]))
	}
	m["layers"] = encode(layers)
	if err := remote.Put(tag, manifestBytes{encode(m), d.MediaType}); err != nil {
		t.Fatal(err)
	}
}
