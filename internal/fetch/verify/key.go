// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

// RSA keys that are computed with. The time for one signature grows with the square of the size: with a modulus of
// 128 KiB, which fits into a signature, it takes most of a minute, and nothing can interrupt it.
const (
	minRSABits = 2048
	maxRSABits = 8192
	// maxExponent is the public exponent that practically all keys have; larger ones only make verifying slower.
	maxExponent = 65537
)

// CheckRSASize tells why an RSA key is too large to be computed with; one that is too small is the caller's matter.
func CheckRSASize(key *rsa.PublicKey) error {
	if bits := key.N.BitLen(); bits > maxRSABits {
		return fmt.Errorf("the RSA key has %d bits: %d to %d are accepted", bits, minRSABits, maxRSABits)
	}
	if key.E < 3 || key.E > maxExponent {
		return fmt.Errorf("the RSA key has the exponent %d: 3 to %d are accepted", key.E, maxExponent)
	}
	return nil
}

// CheckKey tells why a public key is not computed with.
func CheckKey(key crypto.PublicKey) error {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits {
			return fmt.Errorf("the RSA key has %d bits: %d to %d are accepted", bits, minRSABits, maxRSABits)
		}
		return CheckRSASize(key)
	case *ecdsa.PublicKey:
		if !slices.Contains([]elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()}, key.Curve) {
			return fmt.Errorf("the curve %s of the key is not accepted: use P-256, P-384 or P-521", key.Curve.Params().Name)
		}
	case ed25519.PublicKey:
	default:
		return errors.New("the type of the key is not accepted: use ECDSA, RSA or Ed25519")
	}
	return nil
}

// CheckCertificates tells which certificate has a key that is not computed with. Signatures bring certificates along,
// and libraries compute with their keys before they ask who issued them.
func CheckCertificates(certificates []*x509.Certificate) error {
	for _, certificate := range certificates {
		if err := CheckKey(certificate.PublicKey); err != nil {
			return fmt.Errorf("the certificate of %s: %w", Text(certificate.Subject.String()), err)
		}
	}
	return nil
}
