// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
)

const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
	longestPEM       = 64 << 10 // a certificate of ours has about 1 KiB
)

// pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// none tells that there is no pair.
func (p pair) none() bool { return p.cert == nil }

// Reasons why a pair is not used. They never quote the contents, which may be a key.
const (
	whyAbsent   = "none existed"
	whyDamaged  = "the previous one could not be read"
	whyWeak     = "its key had an unsupported type"
	whyMismatch = "its key belonged to another certificate"
)

// readPair reads what writeCertificate and writeKey wrote; otherwise it returns the reason.
func readPair(certificate, key []byte) (pair, string) {
	if len(certificate) == 0 && len(key) == 0 {
		return pair{}, whyAbsent
	}
	certs := readCertificates(certificate)
	block, _ := decode(key)
	if len(certs) != 1 || block == nil {
		return pair{}, whyDamaged
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return pair{}, whyDamaged // the error is dropped on purpose: it may quote a key
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	public := publicKey(certs[0])
	if !ok || public == nil {
		return pair{}, whyWeak
	}
	if !private.PublicKey.Equal(public) {
		return pair{}, whyMismatch
	}
	return pair{cert: certs[0], key: private}, ""
}

// publicKey is the key of a certificate if it is of our type, else nil.
func publicKey(cert *x509.Certificate) *ecdsa.PublicKey {
	public, ok := cert.PublicKey.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return nil
	}
	return public
}

// readCertificates reads the certificates of a PEM file and skips other blocks.
func readCertificates(data []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = decode(data); block == nil {
			return out
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == certificateBlock {
			out = append(out, cert)
		}
	}
}

func decode(data []byte) (*pem.Block, []byte) {
	if len(data) > longestPEM {
		return nil, nil
	}
	return pem.Decode(data)
}

func writeCertificates(certs ...*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, cert := range certs {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: cert.Raw}))
	}
	return out.Bytes()
}

func writeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}
