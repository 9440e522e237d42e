// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

const (
	year = 365 * 24 * time.Hour

	// AuthorityLife is how long an authority lives.
	AuthorityLife = 10 * year
	// ServingLife is how long a serving certificate lives, unless its authority expires earlier.
	ServingLife = 2 * year
	// Succession is the remaining life of an authority at which it gets a successor.
	Succession = 3 * year
	// Settling is the minimum age of a successor when it starts to sign, because caches lag.
	Settling = 24 * time.Hour
)

const (
	// backdated is by how much certificates begin before they are made, because clocks differ. A renewed one does not begin where the former one
	// did: renewal, the longest life and the age of a successor count from the beginning, so each life would be longer and renewed sooner.
	backdated = time.Hour

	longestCommonName = 64 // limit of X.509

	authorityUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	servingUsage   = x509.KeyUsageDigitalSignature
)

// forServers is the extended key usage of all certificates, including authorities.
var forServers = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

// issuer makes keys and certificates.
type issuer struct {
	now     time.Time
	entropy io.Reader
	owner   inventory.Owner
}

// newAuthority makes an authority for servers below the domains.
func (i issuer) newAuthority(domains []string) (pair, error) {
	key, serial, err := i.secrets()
	if err != nil {
		return pair{}, err
	}
	constraints, err := constrain(domains)
	if err != nil {
		return pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		// The serial number keeps the names of successive authorities apart.
		Subject:               pkix.Name{CommonName: authorityCommonName(i.owner), SerialNumber: serial.Text(16)},
		NotBefore:             i.now.Add(-backdated),
		NotAfter:              i.now.Add(AuthorityLife),
		KeyUsage:              authorityUsage,
		ExtKeyUsage:           forServers,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		ExtraExtensions:       []pkix.Extension{constraints},
	}
	return sign(template, pair{cert: template, key: key}, key)
}

// authorityCommonName names the deployment that the authority belongs to.
func authorityCommonName(owner inventory.Owner) string {
	name := "Satchel " + owner.Namespace + "/" + owner.Name
	if len(name) <= longestCommonName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "Satchel " + hex.EncodeToString(sum[:16])
}

// newServing makes a certificate for the names, which does not outlive the authority.
func (i issuer) newServing(names []string, by pair) (pair, error) {
	key, serial, err := i.secrets()
	if err != nil {
		return pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		NotBefore:    i.now.Add(-backdated),
		NotAfter:     i.servingEnd(by),
		KeyUsage:     servingUsage,
		ExtKeyUsage:  forServers,
		DNSNames:     names,

		BasicConstraintsValid: true,
	}
	if len(names[0]) <= longestCommonName {
		template.Subject.CommonName = names[0]
	}
	return sign(template, by, key)
}

// servingEnd is when a certificate expires that is issued now.
func (i issuer) servingEnd(by pair) time.Time {
	end := i.now.Add(ServingLife)
	if by.cert.NotAfter.Before(end) {
		return by.cert.NotAfter
	}
	return end
}

// sign makes the certificate of a key. Without a source of randomness the signature is deterministic (RFC 6979), which is
// equally secure and needs no trust in the source.
func sign(template *x509.Certificate, by pair, key *ecdsa.PrivateKey) (pair, error) {
	der, err := x509.CreateCertificate(nil, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		return pair{}, fmt.Errorf("signing a certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return pair{}, fmt.Errorf("reading a certificate that was just made: %w", err)
	}
	return pair{cert: cert, key: key}, nil
}

// secrets generates a key and a serial number.
func (i issuer) secrets() (*ecdsa.PrivateKey, *big.Int, error) {
	key, err := drawKey(i.entropy)
	if err != nil {
		return nil, nil, err
	}
	raw, err := draw(i.entropy, 16)
	if err != nil {
		return nil, nil, err
	}
	return key, new(big.Int).SetBytes(raw), nil
}

// drawKey takes the first number from the source that is a valid key: nearly all are (FIPS 186-5, A.2.2, rejection sampling). The standard library's
// generator ignores the source that it is given.
func drawKey(entropy io.Reader) (*ecdsa.PrivateKey, error) {
	for range 16 {
		scalar, err := draw(entropy, 32)
		if err != nil {
			return nil, err
		}
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar); err == nil {
			return key, nil
		}
	}
	return nil, errors.New("the source of randomness is broken: it gives no key")
}

func draw(entropy io.Reader, size int) ([]byte, error) {
	out := make([]byte, size)
	if _, err := io.ReadFull(entropy, out); err != nil {
		return nil, fmt.Errorf("drawing random numbers: %w", err)
	}
	return out, nil
}

// subtree of name constraints (RFC 5280, 4.2.1.10): one of its names.
type subtree struct {
	DNS string `asn1:"optional,tag:2,ia5"`
	IP  []byte `asn1:"optional,tag:7"`
}

type nameConstraints struct {
	Permitted []subtree `asn1:"optional,tag:0"`
	Excluded  []subtree `asn1:"optional,tag:1"`
}

var nameConstraintsID = asn1.ObjectIdentifier{2, 5, 29, 30}

// constrain permits names below the domains and no addresses. It is encoded by hand because the fields of
// x509.Certificate for it have types of the package net.
func constrain(domains []string) (pkix.Extension, error) {
	c := nameConstraints{Excluded: []subtree{{IP: make([]byte, 8)}, {IP: make([]byte, 32)}}} // 0.0.0.0/0 and ::/0
	for _, domain := range domains {
		c.Permitted = append(c.Permitted, subtree{DNS: domain})
	}
	value, err := asn1.Marshal(c)
	if err != nil {
		return pkix.Extension{}, fmt.Errorf("writing name constraints: %w", err)
	}
	return pkix.Extension{Id: nameConstraintsID, Critical: true, Value: value}, nil
}
