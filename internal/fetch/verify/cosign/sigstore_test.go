// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"net/url"
	"slices"
	"testing"
	"time"

	ct "github.com/google/certificate-transparency-go"
	cttls "github.com/google/certificate-transparency-go/tls"
	ctx509 "github.com/google/certificate-transparency-go/x509"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// standIn is a Sigstore of its own, in memory: an authority for certificates, their log, a log of signatures and an
// authority for timestamps. sigstore-go's own has the last two; its certificates are in no log.
type standIn struct {
	*ca.VirtualSigstore
	root, issuer       *x509.Certificate
	rootKey, issuerKey *ecdsa.PrivateKey
	logKey             *ecdsa.PrivateKey
}

func newStandIn(t testing.TB) *standIn {
	t.Helper()
	virtual, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	s := &standIn{VirtualSigstore: virtual, logKey: newECDSA(t)}
	if s.root, s.rootKey, err = ca.GenerateRootCa(); err != nil {
		t.Fatal(err)
	}
	s.issuerKey = newECDSA(t)
	s.issuer = create(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "issuer"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, BasicConstraintsValid: true, IsCA: true,
	}, s.root, s.issuerKey.Public(), s.rootKey)
	return s
}

func newECDSA(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// logID identifies a log by its key.
func logID(t testing.TB, public crypto.PublicKey) [32]byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(der)
}

// trust is a trusted_root.json with all parts, or without those that are named; with " over" behind its name a part is there,
// but no longer trusted.
func (s *standIn) trust(t testing.TB, without ...string) []byte {
	t.Helper()
	from, to := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	until := func(part string) time.Time { // parts that are over ended before anything was signed
		if slices.Contains(without, part+" over") {
			return from.Add(time.Minute)
		}
		return to
	}
	logOf := func(key crypto.PublicKey, end time.Time) map[string]*root.TransparencyLog {
		id := logID(t, key)
		return map[string]*root.TransparencyLog{hex.EncodeToString(id[:]): {
			BaseURL: "https://rekor.localhost", ID: id[:], PublicKey: key, HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256,
			ValidityPeriodStart: from, ValidityPeriodEnd: end,
		}}
	}
	authorities := []root.CertificateAuthority{&root.FulcioCertificateAuthority{
		Root: s.root, Intermediates: []*x509.Certificate{s.issuer}, URI: "https://fulcio.localhost", ValidityPeriodStart: from, ValidityPeriodEnd: until("authorities"),
	}}
	certificateLogs, logs, timestamps := logOf(s.logKey.Public(), until("certificate logs")), logOf(s.rekorKey(t), until("logs")), s.TimestampingAuthorities()
	for _, part := range without {
		switch part {
		case "authorities":
			authorities = nil
		case "certificate logs":
			certificateLogs = nil
		case "logs":
			logs = nil
		case "timestamps":
			timestamps = nil
		}
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, authorities, certificateLogs, timestamps, logs)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := trusted.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (s *standIn) rekorKey(t testing.TB) crypto.PublicKey {
	t.Helper()
	for _, log := range s.RekorLogs() {
		return log.PublicKey
	}
	t.Fatal("no log")
	return nil
}

// holder is who gets a certificate, for ten minutes; without a time from a minute ago.
type holder struct {
	subject, issuer string
	from            time.Time
	also            []string
	unlogged        bool // the certificate is in no log
	foreign         bool // the certificate is by another authority
	logKey          *ecdsa.PrivateKey
}

// issue issues a certificate, as Fulcio does.
func (s *standIn) issue(t testing.TB, public crypto.PublicKey, h holder) *x509.Certificate {
	t.Helper()
	issuer, key := s.issuer, s.issuerKey
	if h.foreign {
		other := newStandIn(t)
		issuer, key = other.issuer, other.issuerKey
	}
	if h.from.IsZero() {
		h.from = time.Now().Add(-time.Minute)
	}
	value, err := asn1.Marshal(h.issuer)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: h.from, NotAfter: h.from.Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: value}},
	}
	for _, subject := range append([]string{h.subject}, h.also...) {
		if parsed, err := url.Parse(subject); err == nil && parsed.Scheme != "" {
			template.URIs = append(template.URIs, parsed)
		} else {
			template.EmailAddresses = append(template.EmailAddresses, subject)
		}
	}
	plain := create(t, template, issuer, public, key)
	if h.unlogged {
		return plain
	}
	if h.logKey == nil {
		h.logKey = s.logKey
	}
	template.ExtraExtensions = append(template.ExtraExtensions, signedCertificateTimestamp(t, plain, issuer, h.logKey))
	return create(t, template, issuer, public, key)
}

func create(t testing.TB, template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// signedCertificateTimestamp is the promise of a log to include a certificate: RFC 6962, section 3.3.
func signedCertificateTimestamp(t testing.TB, certificate, issuer *x509.Certificate, key *ecdsa.PrivateKey) pkix.Extension {
	t.Helper()
	entry := ct.LogEntry{Leaf: ct.MerkleTreeLeaf{Version: ct.V1, LeafType: ct.TimestampedEntryLeafType, TimestampedEntry: &ct.TimestampedEntry{
		Timestamp: uint64(time.Now().UnixMilli()), EntryType: ct.PrecertLogEntryType, //nolint:gosec // after 1970
		PrecertEntry: &ct.PreCert{
			IssuerKeyHash: sha256.Sum256(issuer.RawSubjectPublicKeyInfo), TBSCertificate: certificate.RawTBSCertificate,
		},
	}}}
	promise := ct.SignedCertificateTimestamp{
		SCTVersion: ct.V1, LogID: ct.LogID{KeyID: logID(t, key.Public())}, Timestamp: entry.Leaf.TimestampedEntry.Timestamp,
	}
	input, err := ct.SerializeSCTSignatureInput(promise, entry)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(input)
	raw, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	promise.Signature = ct.DigitallySigned{Signature: raw, Algorithm: cttls.SignatureAndHashAlgorithm{Hash: cttls.SHA256, Signature: cttls.ECDSA}}
	serialized, err := cttls.Marshal(promise)
	if err != nil {
		t.Fatal(err)
	}
	list, err := cttls.Marshal(ctx509.SignedCertificateTimestampList{SCTList: []ctx509.SerializedSCT{{Val: serialized}}})
	if err != nil {
		t.Fatal(err)
	}
	value, err := asn1.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: value}
}

// logEntry is an entry of the log for a signature, with the promise to include it and the proof that it did.
func (s *standIn) logEntry(t testing.TB, body []byte, at time.Time) *protorekor.TransparencyLogEntry {
	t.Helper()
	id := logID(t, s.rekorKey(t))
	const index = 0
	promise, err := s.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: at.Unix(), LogIndex: index, LogID: hex.EncodeToString(id[:]),
	})
	if err != nil {
		t.Fatal(err)
	}
	proof, err := s.GetInclusionProof(body)
	if err != nil {
		t.Fatal(err)
	}
	rootHash, err := hex.DecodeString(*proof.RootHash)
	if err != nil {
		t.Fatal(err)
	}
	var kind struct{ Kind, APIVersion string }
	if err := json.Unmarshal(body, &kind); err != nil {
		t.Fatal(err)
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex: index, LogId: &protocommon.LogId{KeyId: id[:]}, KindVersion: &protorekor.KindVersion{Kind: kind.Kind, Version: kind.APIVersion},
		IntegratedTime: at.Unix(), InclusionPromise: &protorekor.InclusionPromise{SignedEntryTimestamp: promise}, CanonicalizedBody: body,
		InclusionProof: &protorekor.InclusionProof{
			LogIndex: *proof.LogIndex, TreeSize: *proof.TreeSize, RootHash: rootHash, Checkpoint: &protorekor.Checkpoint{Envelope: *proof.Checkpoint},
		},
	}
}

// signatureBody is the entry for a signature of what has a digest.
func signatureBody(digest, raw, verifier []byte) []byte {
	return encode(map[string]any{"kind": "hashedrekord", "apiVersion": "0.0.1", "spec": map[string]any{
		"data":      map[string]any{"hash": map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(digest)}},
		"signature": map[string]any{"content": raw, "publicKey": map[string]any{"content": verifier}},
	}})
}

// envelopeBody is the entry for a signed statement.
func envelopeBody(envelope, payload, raw, verifier []byte) []byte {
	whole, content := sha256.Sum256(envelope), sha256.Sum256(payload)
	return encode(map[string]any{"kind": "dsse", "apiVersion": "0.0.1", "spec": map[string]any{
		"envelopeHash": map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(whole[:])},
		"payloadHash":  map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(content[:])},
		"signatures":   []any{map[string]any{"signature": base64.StdEncoding.EncodeToString(raw), "verifier": verifier}},
	}})
}

func encode(value any) []byte {
	raw, err := json.Marshal(value) // maps have their keys sorted, as the log wants it
	if err != nil {
		panic(err) //nolint:forbidigo // a test's own table
	}
	return raw
}

// keyless makes a bundle with a certificate: what cosign makes for an identity.
func (s *standIn) keyless(t testing.TB, content sign.Content, h holder, at time.Time) *protobundle.Bundle {
	t.Helper()
	pair := ecdsaKey(t)
	certificate := s.issue(t, pair.GetPublicKey(), h)
	made := pair.bundle(t, content, sign.BundleOptions{CertificateProvider: certificateOf{certificate}})
	s.log(t, made, certificatePEM(t, certificate), at)
	return made
}

// log adds an entry of the log for what a bundle signs.
func (s *standIn) log(t testing.TB, made *protobundle.Bundle, verifier []byte, at time.Time) {
	t.Helper()
	var body []byte
	if envelope := made.GetDsseEnvelope(); envelope != nil {
		body = envelopeBody(encode(envelope), envelope.Payload, envelope.Signatures[0].Sig, verifier)
	} else {
		message := made.GetMessageSignature()
		body = signatureBody(message.MessageDigest.Digest, message.Signature, verifier)
	}
	made.VerificationMaterial.TlogEntries = append(made.VerificationMaterial.TlogEntries, s.logEntry(t, body, at))
}

// stamp adds a timestamp.
func (s *standIn) stamp(t testing.TB, made *protobundle.Bundle) {
	t.Helper()
	raw := made.GetMessageSignature().GetSignature()
	if envelope := made.GetDsseEnvelope(); envelope != nil {
		raw = envelope.Signatures[0].Sig
	}
	response, err := s.TimestampResponse(raw)
	if err != nil {
		t.Fatal(err)
	}
	made.VerificationMaterial.TimestampVerificationData = &protobundle.TimestampVerificationData{
		Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: response}},
	}
}

type certificateOf struct{ certificate *x509.Certificate }

// GetCertificate implements sign.CertificateProvider.
func (c certificateOf) GetCertificate(context.Context, sign.Keypair, *sign.CertificateProviderOptions) ([]byte, error) {
	return c.certificate.Raw, nil
}

func certificatePEM(t testing.TB, certificate *x509.Certificate) []byte {
	t.Helper()
	raw, err := cryptoutils.MarshalCertificateToPEM(certificate)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(raw)
}

func hexOf(raw []byte) string { return hex.EncodeToString(raw) }
