// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/notaryproject/notation-core-go/signature/cose"
	"github.com/notaryproject/notation-core-go/signature/jws"
	"github.com/notaryproject/notation-go/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	sign1 "github.com/veraison/go-cose"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
	"github.com/satchel-dev/satchel/tests/images"
)

// hugeCertificate is one for an RSA key of 8 KiB with the exponent that takes longest; with it one signature takes a
// fifth of a second, and the time grows with the square of the size.
func hugeCertificate(t testing.TB) []byte {
	t.Helper()
	const bytes = 8 << 10
	modulus := make([]byte, bytes)
	if _, err := rand.Read(modulus); err != nil {
		t.Fatal(err)
	}
	modulus[0], modulus[bytes-1] = modulus[0]|0x80, modulus[bytes-1]|1
	key, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: new(big.Int).SetBytes(modulus), E: 1<<31 - 1})
	if err != nil {
		t.Fatal(err)
	}
	var certificate struct {
		TBS                  asn1.RawValue
		Algorithm, Signature asn1.RawValue
	}
	if _, err := asn1.Unmarshal(newAuthority(t, "Huge").certificate.Raw, &certificate); err != nil {
		t.Fatal(err)
	}
	var tbs []byte
	part := 0
	for rest := certificate.TBS.Bytes; len(rest) > 0; part++ {
		var value asn1.RawValue
		if rest, err = asn1.Unmarshal(rest, &value); err != nil {
			t.Fatal(err)
		}
		if part == 6 { // the key
			value.FullBytes = key
		}
		tbs = append(tbs, value.FullBytes...)
	}
	certificate.TBS = asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: tbs}
	raw, err := asn1.Marshal(certificate)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// hugeToken is a timestamp that brings a certificate along: RFC 5652, section 5.1.
func hugeToken(t testing.TB, certificate []byte) []byte {
	t.Helper()
	encode := func(value any) []byte {
		raw, err := asn1.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	all := func(class, tag int, parts ...[]byte) []byte {
		return encode(asn1.RawValue{Class: class, Tag: tag, IsCompound: true, Bytes: slices.Concat(parts...)})
	}
	content := all(0, asn1.TagSequence, encode(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 1, 4}), all(asn1.ClassContextSpecific, 0, encode([]byte("x"))))
	signed := all(0, asn1.TagSequence, encode(3), all(0, asn1.TagSet), content, all(asn1.ClassContextSpecific, 0, certificate), all(0, asn1.TagSet))
	return all(0, asn1.TagSequence, encode(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2}), all(asn1.ClassContextSpecific, 0, signed))
}

// alterJWS and alterCOSE change the unsigned part of an envelope, where the certificates are.
func alterJWS(t testing.TB, envelope []byte, change func(header map[string]any)) []byte {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal(envelope, &document); err != nil {
		t.Fatal(err)
	}
	header, ok := document["header"].(map[string]any)
	if !ok {
		t.Fatal("no header")
	}
	change(header)
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func alterCOSE(t testing.TB, envelope []byte, change func(header sign1.UnprotectedHeader)) []byte {
	t.Helper()
	var message sign1.Sign1Message
	if err := message.UnmarshalCBOR(envelope); err != nil {
		t.Fatal(err)
	}
	change(message.Headers.Unprotected)
	message.Headers.RawUnprotected = nil
	raw, err := message.MarshalCBOR()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestM14KeysThatTakeForever: the library verifies with what a signature brings along.
func TestM14KeysThatTakeForever(t *testing.T) {
	acme := newAuthority(t, "Acme Root")
	jane := acme.issue(t, "Jane", nil)
	huge := hugeCertificate(t)
	text := base64.StdEncoding.EncodeToString(huge)
	leaf := base64.StdEncoding.EncodeToString(jane.chain[0].Raw)
	r := newRepository(t, true)
	v := trust(t, policy("strict", "*", "*"), map[string][]byte{"acme.crt": acme.pem()})
	forms := map[string]func(ref name.Digest) (string, []byte){
		"JWSLeaf": func(ref name.Digest) (string, []byte) {
			return jws.MediaTypeEnvelope, alterJWS(t, jane.sign(t, request{mediaType: jws.MediaTypeEnvelope, descriptor: r.descriptor(t, ref)}),
				func(header map[string]any) { header["x5c"] = []string{text} })
		},
		"JWSIssuer": func(ref name.Digest) (string, []byte) {
			return jws.MediaTypeEnvelope, alterJWS(t, jane.sign(t, request{mediaType: jws.MediaTypeEnvelope, descriptor: r.descriptor(t, ref)}),
				func(header map[string]any) { header["x5c"] = []string{leaf, text} })
		},
		"COSELeaf": func(ref name.Digest) (string, []byte) {
			return cose.MediaTypeEnvelope, alterCOSE(t, jane.sign(t, request{mediaType: cose.MediaTypeEnvelope, descriptor: r.descriptor(t, ref)}),
				func(header sign1.UnprotectedHeader) { header[sign1.HeaderLabelX5Chain] = []any{huge} })
		},
		"COSEIssuer": func(ref name.Digest) (string, []byte) {
			return cose.MediaTypeEnvelope, alterCOSE(t, jane.sign(t, request{mediaType: cose.MediaTypeEnvelope, descriptor: r.descriptor(t, ref)}),
				func(header sign1.UnprotectedHeader) {
					header[sign1.HeaderLabelX5Chain] = []any{jane.chain[0].Raw, huge}
				})
		},
	}
	forms["JWSTimestamp"] = func(ref name.Digest) (string, []byte) {
		return jws.MediaTypeEnvelope, alterJWS(t, jane.sign(t, request{mediaType: jws.MediaTypeEnvelope, descriptor: r.descriptor(t, ref)}),
			func(header map[string]any) { header["io.cncf.notary.timestampSignature"] = hugeToken(t, huge) })
	}
	forms["COSETimestamp"] = func(ref name.Digest) (string, []byte) {
		return cose.MediaTypeEnvelope, alterCOSE(t, jane.sign(t, request{mediaType: cose.MediaTypeEnvelope, descriptor: r.descriptor(t, ref)}),
			func(header sign1.UnprotectedHeader) { header["io.cncf.notary.timestampSignature"] = hugeToken(t, huge) })
	}
	for title, form := range forms {
		t.Run(title, func(t *testing.T) {
			ref := r.Image(t)
			mediaType, envelope := form(ref)
			r.store(t, ref, mediaType, envelope)
			if by, err := images.Verified(t, ref.String(), v); fetch.ReasonOf(err) != fetch.Unverified || !strings.Contains(err.Error(), "the RSA key has 65536 bits") {
				t.Errorf("%q, %v", by, err)
			}
		})
	}
}

func TestM14HostileEnvelopes(t *testing.T) {
	acme := newAuthority(t, "Acme Root")
	jane := acme.issue(t, "Jane", nil)
	r := newRepository(t, true)
	v := trust(t, policy("strict", "*", "*"), map[string][]byte{"acme.crt": acme.pem()})
	leaf := base64.StdEncoding.EncodeToString(jane.chain[0].Raw)
	for title, tc := range map[string]struct {
		mediaType string
		envelope  []byte
		want      string
	}{
		"OtherType":   {"application/json", []byte("{}"), "the type of the signature"},
		"NoJSON":      {jws.MediaTypeEnvelope, []byte("{"), "malformed"},
		"EmptyJSON":   {jws.MediaTypeEnvelope, []byte("{}"), "0 certificates"},
		"ManyJSON":    {jws.MediaTypeEnvelope, []byte(`{"header":{"x5c":[` + strings.Repeat(`"`+leaf+`",`, 10) + `"` + leaf + `"]}}`), "11 certificates"},
		"NoDER":       {jws.MediaTypeEnvelope, []byte(`{"header":{"x5c":["AAAA"]}}`), "malformed"},
		"OnlyHeader":  {jws.MediaTypeEnvelope, []byte(`{"header":{"x5c":["` + leaf + `"]}}`), "unable to parse"},
		"NoTimestamp": {jws.MediaTypeEnvelope, []byte(`{"header":{"x5c":["` + leaf + `"],"io.cncf.notary.timestampSignature":"AAAA"}}`), "malformed"},
		"NoCBOR":      {cose.MediaTypeEnvelope, []byte("\xff"), "malformed"},
		"JWSAsCOSE":   {cose.MediaTypeEnvelope, jane.sign(t, request{mediaType: jws.MediaTypeEnvelope, descriptor: ocispec.Descriptor{Size: 1}}), "malformed"},
		"Huge":        {jws.MediaTypeEnvelope, []byte(`{"a":"` + strings.Repeat("x", 300<<10) + `"}`), "has more than 262144 bytes"},
	} {
		t.Run(title, func(t *testing.T) {
			ref := r.Image(t)
			r.store(t, ref, tc.mediaType, tc.envelope)
			by, err := images.Verified(t, ref.String(), v)
			if fetch.ReasonOf(err) != fetch.Unverified || !strings.Contains(err.Error(), tc.want) && title != "OnlyHeader" {
				t.Errorf("%q, %v", by, err)
			}
		})
	}
}

// TestM14HostileRegistries: whatever a registry serves, nothing is verified, in bounded time and memory.
func TestM14HostileRegistries(t *testing.T) {
	acme := newAuthority(t, "Acme Root")
	jane := acme.issue(t, "Jane", nil)
	list := func(w http.ResponseWriter, n int) {
		index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
		for i := range n {
			index.Manifests = append(index.Manifests, v1.Descriptor{
				MediaType: types.OCIManifestSchema1, Size: 500, ArtifactType: registry.ArtifactTypeNotation, Digest: v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%064x", i)},
			})
		}
		w.Header().Set("Content-Type", string(types.OCIImageIndex))
		_ = json.NewEncoder(w).Encode(index)
	}
	requests := 0
	cases := map[string]struct {
		reason string
		serve  func(w http.ResponseWriter, r *http.Request) bool
		want   fetch.Reason
	}{
		"Blobs": {"100 MiB where signatures are", func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				w.Header().Set("Content-Length", fmt.Sprint(100<<20))
				_, _ = io.Copy(w, io.LimitReader(rand.Reader, 100<<20))
				return true
			}
			return false
		}, fetch.Unverified},
		"Referrers10000": {"ten thousand of them", func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/referrers/") {
				list(w, 10_000)
				return true
			}
			return false
		}, fetch.Unverified},
		"Referrers900": {"as many as may be listed, of which none is there", func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/referrers/") {
				list(w, 900)
				return true
			}
			return false
		}, fetch.Unverified},
		"Down": {"the registry fails: that says nothing about signatures", func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/referrers/") {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
			return false
		}, fetch.Unreachable},
		"DownLater": {"likewise", func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
			return false
		}, fetch.Unreachable},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			r := newRepository(t, true)
			ref := r.Image(t)
			jane.put(t, r, ref, request{})
			requests = 0
			r.Alter(func(w http.ResponseWriter, request *http.Request) bool {
				requests++
				return tc.serve(w, request)
			})
			by, err := images.Verified(t, ref.String(), trust(t, policy("strict", "*", "*"), map[string][]byte{"acme.crt": acme.pem()}))
			if by != "" || fetch.ReasonOf(err) != tc.want {
				t.Errorf("%s: %q, %v", tc.reason, by, err)
			}
			if requests > verify.Candidates+10 {
				t.Errorf("%s: %d requests", tc.reason, requests)
			}
		})
	}
}

// TestLeavesNothingBehind runs the suite once more in an environment in which a trace would show: an empty home, and
// proxies that do not answer.
func TestLeavesNothingBehind(t *testing.T) {
	home := t.TempDir()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestM14", "-test.timeout", "5m") //nolint:gosec // this test binary
	nowhere := "http://127.0.0.1:1"
	command.Env = []string{
		"HOME=" + home, "TMPDIR=" + t.TempDir(), "PATH=", "HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "ALL_PROXY=" + nowhere,
		"XDG_CONFIG_HOME=" + home, "XDG_CACHE_HOME=" + home, "XDG_DATA_HOME=" + home,
	}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out[max(0, len(out)-2000):])
	}
	left, err := os.ReadDir(home)
	if err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// FuzzEnvelope: whatever the bytes are, nothing is accepted that was not signed, and nothing breaks.
func FuzzEnvelope(f *testing.F) {
	acme := newAuthority(f, "Acme Root")
	jane := acme.issue(f, "Jane", nil)
	other := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: "sha256:" + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Size: 1}
	for _, mediaType := range envelopes {
		f.Add(jane.sign(f, request{mediaType: mediaType, descriptor: other}), mediaType == jws.MediaTypeEnvelope)
	}
	v := trust(f, policy("strict", "*", "*"), map[string][]byte{"acme.crt": acme.pem()})
	digest := fetch.SHA256([]byte("x"))
	subject := image.Subject{Repository: "example.org/a", Digest: digest, MediaType: ocispec.MediaTypeImageManifest, Size: 1}
	f.Fuzz(func(t *testing.T, envelope []byte, asJWS bool) {
		mediaType := cose.MediaTypeEnvelope
		if asJWS {
			mediaType = jws.MediaTypeEnvelope
		}
		if by, err := v.accept(context.Background(), subject, "example.org/a@"+digest.String(), envelope, mediaType); err == nil {
			t.Errorf("accepted as by %s", by)
		}
	})
}

// FuzzPolicy: an accepted policy can be evaluated, and does not accept unsigned content.
func FuzzPolicy(f *testing.F) {
	acme := newAuthority(f, "Acme Root")
	f.Add(policy("strict", "*", "*"), acme.pem())
	f.Add(policy("audit", "example.org/a", "x509.subject: C=US, ST=WA, O=Acme"), acme.pem())
	f.Add([]byte(`{"version":"1.0","trustPolicies":[{"name":"a","registryScopes":["*"],"signatureVerification":{"level":"skip"}}]}`), acme.pem())
	digest := fetch.SHA256([]byte("x"))
	f.Fuzz(func(t *testing.T, document, certificate []byte) {
		v, err := New(Options{Policy: document, Certificates: map[string][]byte{"acme.crt": certificate}})
		if err != nil {
			if fetch.ReasonOf(err) != fetch.Refused {
				t.Errorf("%v", err)
			}
			return
		}
		by, err := v.Verify(context.Background(), image.Subject{Repository: "example.org/a", Digest: digest, Registry: nothing{}})
		if by != "" || err == nil {
			t.Errorf("accepted as by %s", by)
		}
	})
}

// nothing is a repository with a signature that is none.
type nothing struct{}

func (nothing) Manifest(context.Context, string) ([]byte, string, error) {
	return []byte(`{"layers":[{"mediaType":"application/jose+json","size":2}]}`), "", nil
}

func (nothing) Referrers(context.Context, fetch.Digest, string) ([]v1.Descriptor, error) {
	return []v1.Descriptor{{Size: 10}}, nil
}

func (nothing) Blob(context.Context, v1.Descriptor, int64) ([]byte, error) { return []byte("{}"), nil }
