// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// maxCertificates bounds the certificates of a Secret.
const maxCertificates = 256

// suffixes end the names of entries that are certificates.
var suffixes = []string{".crt", ".pem"}

// store holds the certificates of a Secret.
type store []stored

// stored are the certificates of one entry, and what they are for.
type stored struct {
	kind         truststore.Type // "" for authorities of any kind but tsa
	name         string          // "" for trust stores of any name
	certificates []*x509.Certificate
}

// parseStore reads all entries that are certificates; one that cannot be read is refused, whatever else there is.
func parseStore(entries map[string][]byte) (store, error) {
	var s store
	total := 0
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		base, ok := certificateName(name)
		if !ok {
			continue
		}
		read := stored{}
		read.kind, read.name = storeOf(base)
		certificates, err := parseCertificates(entries[name], read.kind)
		if err != nil {
			return nil, fetch.Errorf(fetch.Refused, "the entry %s: %w", fetch.Quote(name), err)
		}
		read.certificates = certificates
		s, total = append(s, read), total+len(certificates)
	}
	switch {
	case total == 0:
		return nil, fetch.Errorf(fetch.Refused, "%w: give certificates as entries *.crt or *.pem of the Secret", verify.ErrNoTrust)
	case total > maxCertificates:
		return nil, fetch.Errorf(fetch.Refused, "the Secret has %d certificates: %d are the limit", total, maxCertificates)
	}
	return s, nil
}

func certificateName(name string) (base string, ok bool) {
	for _, suffix := range suffixes {
		if base, ok = strings.CutSuffix(name, suffix); ok {
			return base, true
		}
	}
	return "", false
}

// storeOf reads "type.name" or "type"; any other name says nothing.
func storeOf(base string) (truststore.Type, string) {
	kind, name, _ := strings.Cut(base, ".")
	if slices.Contains(truststore.Types, truststore.Type(kind)) {
		return truststore.Type(kind), name
	}
	return "", ""
}

// parseCertificates reads PEM. Its errors do not repeat the content, which may be a private key by mistake.
func parseCertificates(data []byte, kind truststore.Type) ([]*x509.Certificate, error) {
	if len(data) > verify.EntryBytes {
		return nil, errors.New("it is too long")
	}
	var found []*x509.Certificate
	for rest := bytes.TrimSpace(data); len(rest) > 0 || len(found) == 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("it has to be PEM with nothing but certificates")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("a certificate in it cannot be read")
		}
		found = append(found, certificate)
	}
	if err := verify.CheckCertificates(found); err != nil {
		return nil, err
	}
	for _, certificate := range found {
		if err := checkAnchor(certificate, kind); err != nil {
			return nil, fmt.Errorf("the certificate of %s %w", verify.Text(certificate.Subject.String()), err)
		}
	}
	return found, nil
}

// checkAnchor has the rules of the library for what may be in a trust store.
func checkAnchor(certificate *x509.Certificate, kind truststore.Type) error {
	if err := truststore.ValidateCertificates([]*x509.Certificate{certificate}); err != nil {
		return errors.New("is neither one of an authority nor self-signed")
	}
	if kind == truststore.TypeTSA &&
		(certificate.CheckSignatureFrom(certificate) != nil || !bytes.Equal(certificate.RawSubject, certificate.RawIssuer)) {
		return errors.New("is not one of a root authority, as timestamps need it")
	}
	return nil
}

// GetCertificates implements truststore.X509TrustStore.
func (s store) GetCertificates(_ context.Context, kind truststore.Type, name string) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	for _, entry := range s {
		anyKind := entry.kind == "" && kind != truststore.TypeTSA
		if (anyKind || entry.kind == kind) && (entry.name == "" || entry.name == name) {
			found = append(found, entry.certificates...)
		}
	}
	if len(found) == 0 {
		return nil, truststore.TrustStoreError{Msg: fmt.Sprintf("no certificate is for the trust store %s:%s", kind, name)}
	}
	return found, nil
}

// serves tells which trust store of the policy has no certificate.
func (s store) serves(policy *trustpolicy.Document) error {
	for _, statement := range policy.TrustPolicies {
		for _, wanted := range statement.TrustStores {
			kind, name, _ := strings.Cut(wanted, ":")
			if _, err := s.GetCertificates(context.Background(), truststore.Type(kind), name); err != nil {
				return fetch.Errorf(fetch.Refused, "the Secret has no certificate for the trust store %s of the trust policy: "+
					"store it as the entry %s.%s.crt", fetch.Quote(wanted), kind, name)
			}
		}
	}
	return nil
}
