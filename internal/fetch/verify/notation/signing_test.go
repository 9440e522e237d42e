// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/notation-core-go/signature/cose"
	"github.com/notaryproject/notation-core-go/signature/jws"
	"github.com/notaryproject/tspclient-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// authority issues certificates for signing.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// identity is a certificate for signing, with its key and chain.
type identity struct {
	key   crypto.Signer
	chain []*x509.Certificate
}

var serial int64

func issue(t testing.TB, template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) *x509.Certificate {
	t.Helper()
	serial++
	template.SerialNumber = big.NewInt(serial)
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

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func subject(common string) pkix.Name {
	return pkix.Name{CommonName: common, Organization: []string{"Acme"}, Province: []string{"WA"}, Country: []string{"US"}}
}

// newAuthority is valid for ten years, five of them over.
func newAuthority(t testing.TB, common string) authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		Subject: subject(common), NotBefore: time.Now().AddDate(-5, 0, 0), NotAfter: time.Now().AddDate(5, 0, 0),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLen: 1,
	}
	return authority{issue(t, template, template, key.Public(), key), key}
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// issue issues a certificate for signing; change may alter it before.
func (a authority) issue(t testing.TB, common string, change func(*x509.Certificate)) identity {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		Subject: subject(common), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	if change != nil {
		change(template)
	}
	return identity{key, []*x509.Certificate{issue(t, template, a.certificate, key.Public(), a.key), a.certificate}}
}

// request is what is signed, and how.
type request struct {
	mediaType  string
	descriptor ocispec.Descriptor
	time       time.Time
	expiry     time.Time
	scheme     signature.SigningScheme
	attributes []signature.Attribute
	// Who says when it was signed.
	timestamper tspclient.Timestamper
	roots       *x509.CertPool
}

// sign makes an envelope with the core library of notation.
func (i identity) sign(t testing.TB, r request) []byte {
	t.Helper()
	content, err := json.Marshal(map[string]any{"targetArtifact": r.descriptor})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := signature.NewLocalSigner(i.chain, i.key)
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := signature.NewEnvelope(r.mediaType)
	if err != nil {
		t.Fatal(err)
	}
	if r.time.IsZero() {
		r.time = time.Now()
	}
	if r.scheme == "" {
		r.scheme = signature.SigningSchemeX509
	}
	raw, err := envelope.Sign(&signature.SignRequest{
		Payload: signature.Payload{ContentType: "application/vnd.cncf.notary.payload.v1+json", Content: content},
		Signer:  signer, SigningTime: r.time, Expiry: r.expiry, SigningScheme: r.scheme,
		ExtendedSignedAttributes: r.attributes, Timestamper: r.timestamper, TSARootCAs: r.roots,
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// envelopes are the two forms of a signature.
var envelopes = map[string]string{"JWS": jws.MediaTypeEnvelope, "COSE": cose.MediaTypeEnvelope}

// put signs an image and stores the signature.
func (i identity) put(t testing.TB, r repository, ref name.Digest, how request) {
	t.Helper()
	if how.mediaType == "" {
		how.mediaType = jws.MediaTypeEnvelope
	}
	if how.descriptor.Digest == "" {
		how.descriptor = r.descriptor(t, ref)
	}
	r.store(t, ref, how.mediaType, i.sign(t, how))
}

// policy is a trust policy with one statement.
func policy(level, scope, identity string) []byte {
	return fmt.Appendf(nil, `{"version":"1.0","trustPolicies":[{"name":"acme","registryScopes":[%q],
		"signatureVerification":{"level":%q},"trustStores":["ca:acme"],"trustedIdentities":[%q]}]}`, scope, level, identity)
}
