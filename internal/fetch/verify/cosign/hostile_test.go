// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
	"github.com/satchel-dev/satchel/tests/images"
)

// hugeKey has a modulus of so many bytes, and the exponent that takes longest.
func hugeKey(t testing.TB, bytes int) *rsa.PublicKey {
	t.Helper()
	raw := make([]byte, bytes)
	if _, err := rand.Read(raw); err != nil {
		t.Fatal(err)
	}
	raw[0], raw[bytes-1] = raw[0]|0x80, raw[bytes-1]|1
	return &rsa.PublicKey{N: new(big.Int).SetBytes(raw), E: 1<<31 - 1}
}

// TestM14KeysThatTakeForever: a library verifies with what a signature brings along. With a key of 8 KiB one
// signature takes a fifth of a second, and the time grows with the square of the size.
func TestM14KeysThatTakeForever(t *testing.T) {
	s := newStandIn(t)
	key := hugeKey(t, 8<<10)
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	raw := make([]byte, 8<<10)
	digest := fetch.SHA256(archive)
	sum, err := hex.DecodeString(strings.TrimPrefix(digest.String(), "sha256:"))
	if err != nil {
		t.Fatal(err)
	}
	certificate := hugeCertificate(t, der)
	entry := func(verifier []byte) *protobundle.VerificationMaterial {
		return &protobundle.VerificationMaterial{
			Content:     &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}},
			TlogEntries: []*protorekor.TransparencyLogEntry{s.logEntry(t, signatureBody(sum, raw, verifier), time.Now())},
		}
	}
	for title, material := range map[string]*protobundle.VerificationMaterial{
		"Key":         entry(encoded),
		"Certificate": entry(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		"Second":      entry(append(ecdsaKey(t).pem(t), encoded...)),
		"Leaf": {Content: &protobundle.VerificationMaterial_Certificate{
			Certificate: &protocommon.X509Certificate{RawBytes: certificate},
		}},
		"Timestamp": {
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}},
			TimestampVerificationData: &protobundle.TimestampVerificationData{Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{
				{SignedTimestamp: hugeTimestamp(t, certificate)},
			}},
		},
	} {
		t.Run(title, func(t *testing.T) {
			document, err := protojson.Marshal(&protobundle.Bundle{
				MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json", VerificationMaterial: material,
				Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
					MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum}, Signature: raw,
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			v := verifier(t, Options{Identities: []Identity{isJane}, TrustedRoot: s.trust(t)})
			if by, err := v.VerifyBlob(context.Background(), digest, document); err == nil || !strings.Contains(err.Error(), "the RSA key has 65536 bits") {
				t.Errorf("%q, %v", by, err)
			}
		})
	}
}

// hugeCertificate is one for a huge key, without a valid signature.
func hugeCertificate(t testing.TB, key []byte) []byte {
	t.Helper()
	plain := newStandIn(t).root
	var certificate struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(plain.Raw, &certificate); err != nil {
		t.Fatal(err)
	}
	var parts []asn1.RawValue
	for rest := certificate.TBS.Bytes; len(rest) > 0; {
		var part asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &part); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	const keyPart = 6
	var tbs []byte
	for i, part := range parts {
		if i == keyPart {
			tbs = append(tbs, key...)
			continue
		}
		tbs = append(tbs, part.FullBytes...)
	}
	certificate.TBS = asn1.RawValue{Class: asn1.ClassUniversal, Tag: asn1.TagSequence, IsCompound: true, Bytes: tbs}
	raw, err := asn1.Marshal(certificate)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

// hugeTimestamp is a timestamp that brings a certificate along.
func hugeTimestamp(t testing.TB, certificate []byte) []byte {
	t.Helper()
	oid := func(numbers ...int) []byte { return der(t, asn1.ObjectIdentifier(numbers)) }
	sequence := func(tag int, class int, parts ...[]byte) []byte {
		var all []byte
		for _, part := range parts {
			all = append(all, part...)
		}
		return der(t, asn1.RawValue{Class: class, Tag: tag, IsCompound: true, Bytes: all})
	}
	content := sequence(asn1.TagSequence, asn1.ClassUniversal, oid(1, 2, 840, 113549, 1, 9, 16, 1, 4))
	signed := sequence(asn1.TagSequence, asn1.ClassUniversal,
		der(t, 3), sequence(asn1.TagSet, asn1.ClassUniversal), content,
		sequence(0, asn1.ClassContextSpecific, certificate), sequence(asn1.TagSet, asn1.ClassUniversal))
	token := sequence(asn1.TagSequence, asn1.ClassUniversal, oid(1, 2, 840, 113549, 1, 7, 2), sequence(0, asn1.ClassContextSpecific, signed))
	return sequence(asn1.TagSequence, asn1.ClassUniversal, sequence(asn1.TagSequence, asn1.ClassUniversal, der(t, 0)), token)
}

func der(t testing.TB, value any) []byte {
	t.Helper()
	raw, err := asn1.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestM14HostileRegistries: whatever a registry serves, nothing is verified, in bounded time and memory.
func TestM14HostileRegistries(t *testing.T) {
	pair := ecdsaKey(t)
	tag := func(ref name.Digest) string { return strings.Replace(ref.DigestStr(), ":", "-", 1) + ".sig" }
	huge := func(w http.ResponseWriter) { // 100 MiB, or as much as anybody reads
		w.Header().Set("Content-Length", fmt.Sprint(100<<20))
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 100<<20))
	}
	list := func(w http.ResponseWriter, n int) {
		index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
		for i := range n {
			index.Manifests = append(index.Manifests, v1.Descriptor{
				MediaType: types.OCIManifestSchema1, Size: 500, ArtifactType: bundleType, Digest: v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%064x", i)},
			})
		}
		w.Header().Set("Content-Type", string(types.OCIImageIndex))
		_ = json.NewEncoder(w).Encode(index)
	}
	cases := map[string]struct {
		reason string
		serve  func(w http.ResponseWriter, r *http.Request, ref name.Digest) bool
		want   fetch.Reason
		most   int // requests
	}{
		"HugeManifest": {"100 MiB where signatures are listed", func(w http.ResponseWriter, r *http.Request, ref name.Digest) bool {
			if strings.HasSuffix(r.URL.Path, tag(ref)) {
				huge(w)
				return true
			}
			return false
		}, fetch.Unverified, 10},
		"HugeBlobs": {"100 MiB where signatures are", func(w http.ResponseWriter, r *http.Request, _ name.Digest) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				huge(w)
				return true
			}
			return false
		}, fetch.Unverified, 10},
		"HugeList": {"100 MiB of referrers", func(w http.ResponseWriter, r *http.Request, _ name.Digest) bool {
			if strings.Contains(r.URL.Path, "/referrers/") {
				w.Header().Set("Content-Type", string(types.OCIImageIndex))
				huge(w)
				return true
			}
			return strings.Contains(r.URL.Path, ".sig") && notFound(w)
		}, fetch.Unverified, 10},
		"Referrers10000": {"ten thousand of them", func(w http.ResponseWriter, r *http.Request, _ name.Digest) bool {
			if strings.Contains(r.URL.Path, "/referrers/") {
				list(w, 10_000)
				return true
			}
			return strings.Contains(r.URL.Path, ".sig") && notFound(w)
		}, fetch.Unverified, 10},
		"Referrers900": {"as many as may be listed, of which none is there", func(w http.ResponseWriter, r *http.Request, _ name.Digest) bool {
			if strings.Contains(r.URL.Path, "/referrers/") {
				list(w, 900)
				return true
			}
			return strings.Contains(r.URL.Path, ".sig") && notFound(w)
		}, fetch.Unverified, verify.Candidates + 10},
		"Garbage": {"nonsense everywhere", func(w http.ResponseWriter, r *http.Request, ref name.Digest) bool {
			if strings.HasSuffix(r.URL.Path, ref.DigestStr()) && !strings.Contains(r.URL.Path, "/referrers/") {
				return false
			}
			_, _ = io.WriteString(w, "{]")
			return true
		}, fetch.Unverified, 10},
		"Down": {"the registry fails: that says nothing about signatures", func(w http.ResponseWriter, r *http.Request, _ name.Digest) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
			return false
		}, fetch.Unreachable, 10},
		"DownAtOnce": {"likewise", func(w http.ResponseWriter, r *http.Request, _ name.Digest) bool {
			if strings.Contains(r.URL.Path, ".sig") {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
			return false
		}, fetch.Unreachable, 10},
		"Forbidden": {"the login does not suffice", func(w http.ResponseWriter, r *http.Request, _ name.Digest) bool {
			if strings.Contains(r.URL.Path, ".sig") {
				w.WriteHeader(http.StatusForbidden)
				return true
			}
			return false
		}, fetch.Unauthorized, 10},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			r := images.New(t, true)
			ref := r.Image(t)
			pair.tag(t, ref)
			r.Alter(func(w http.ResponseWriter, request *http.Request) bool { return tc.serve(w, request, ref) })
			by, err := images.Verified(t, ref.String(), verifier(t, Options{Keys: keys(t, pair)}))
			if by != "" || fetch.ReasonOf(err) != tc.want {
				t.Errorf("%s: %q, %v", tc.reason, by, err)
			}
			if got := r.Seen(); len(got) > tc.most {
				t.Errorf("%s: %d requests", tc.reason, len(got))
			}
		})
	}
}

func notFound(w http.ResponseWriter) bool {
	w.WriteHeader(http.StatusNotFound)
	return true
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestCancelled(t *testing.T) {
	pair := ecdsaKey(t)
	r := images.New(t, true)
	ref := r.Image(t)
	pair.tag(t, ref)
	ctx, cancel := context.WithCancel(context.Background())
	f := images.Fetcher(t, ref.String(), verifier(t, Options{Keys: keys(t, pair)}))
	resolved, err := f.Resolve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r.Alter(func(_ http.ResponseWriter, request *http.Request) bool {
		if strings.Contains(request.URL.Path, ".sig") {
			cancel()
		}
		return false
	})
	if _, err := f.Verify(ctx, resolved); err == nil || fetch.ReasonOf(err) == fetch.Unverified {
		t.Errorf("a check that did not finish must not report a missing signature: %v", err)
	}
	if _, err := verifier(t, Options{Keys: keys(t, pair)}).VerifyBlob(ctx, fetch.SHA256(archive), bare(pair.sign(t, archive))); err == nil {
		t.Error("an archive was verified after the end")
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

// FuzzSignature: whatever the bytes are, nothing is accepted that the key did not sign, and nothing breaks.
func FuzzSignature(f *testing.F) {
	pair := ecdsaKey(f)
	s := newStandIn(f)
	digest := fetch.SHA256(archive)
	ref, err := name.NewDigest("example.org/a@" + digest.String())
	if err != nil {
		f.Fatal(err)
	}
	other, err := name.NewDigest("example.org/a@sha256:" + strings.Repeat("a", 64))
	if err != nil {
		f.Fatal(err)
	}
	entry := encode(map[string]any{"SignedEntryTimestamp": []byte("x"), "Payload": map[string]any{
		"body": signatureBody(make([]byte, 32), []byte("x"), pair.pem(f)), "integratedTime": 1, "logIndex": 1, "logID": "00",
	}})
	f.Add(claim(f, ref), base64.StdEncoding.EncodeToString(pair.sign(f, claim(f, other))), string(certificatePEM(f, s.root)), string(entry), `{"SignedRFC3161Timestamp":"MAA="}`)
	f.Add([]byte(`{"critical":{}}`), "", "", "", "")
	key := verifier(f, Options{Keys: keys(f, pair)})
	logged := verifier(f, Options{Keys: keys(f, pair), TrustedRoot: s.trust(f)})
	identity := verifier(f, Options{Identities: []Identity{isJane}, TrustedRoot: s.trust(f)})
	f.Fuzz(func(t *testing.T, payload []byte, signature, certificate, log, timestamp string) {
		annotations := map[string]string{
			signatureAnnotation: signature, certificateAnnotation: certificate, logAnnotation: log, timestampAnnotation: timestamp,
		}
		for _, v := range []*Verifier{key, logged, identity} {
			read, err := simple(payload, annotations, digest, v.unlogged)
			if err != nil {
				continue
			}
			if by, err := v.accept(context.Background(), read, digest); err == nil {
				t.Errorf("accepted as by %s", by)
			}
		}
	})
}

// FuzzBundle is FuzzSignature for the newer form.
func FuzzBundle(f *testing.F) {
	pair := ecdsaKey(f)
	s := newStandIn(f)
	other := fetch.SHA256([]byte("x")).String()
	f.Add(marshal(f, pair.envelope(f, other, signPredicate)))
	f.Add([]byte(base64.StdEncoding.EncodeToString(pair.sign(f, []byte("x")))))
	made := pair.envelope(f, other, signPredicate)
	s.log(f, made, pair.pem(f), time.Now())
	s.stamp(f, made)
	f.Add(marshal(f, made))
	digest := fetch.SHA256(archive)
	trusted := s.trust(f)
	verifiers := []*Verifier{
		verifier(f, Options{Keys: keys(f, pair)}), verifier(f, Options{Keys: keys(f, pair), TrustedRoot: trusted}),
		verifier(f, Options{Identities: []Identity{isJane}, TrustedRoot: trusted}),
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		for _, v := range verifiers {
			by, err := v.VerifyBlob(context.Background(), digest, document)
			if err == nil || by != "" || fetch.ReasonOf(err) != fetch.Unverified {
				t.Errorf("%q, %v", by, err)
			}
		}
	})
}
