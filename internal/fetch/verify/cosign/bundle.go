// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"crypto/x509"
	"errors"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// signed is one signature with all that belongs to it.
type signed struct {
	bundle *bundle.Bundle
	// payload is what was signed, where that is not the subject itself or a statement about it.
	payload []byte
}

// Limits on what a bundle holds.
const (
	maxLogEntries     = 8
	maxEntryBytes     = 32 << 10
	maxTimestamps     = 8
	maxTimestampBytes = 16 << 10
)

var errNoBundle = fetch.Errorf(fetch.InvalidContent, "it is no Sigstore bundle")

// parseBundle reads a Sigstore bundle.
func parseBundle(data []byte, unlogged bool) (signed, error) {
	if len(data) > verify.DocumentBytes {
		return signed{}, fetch.Errorf(fetch.LimitExceeded, "the bundle has more than %d bytes", verify.DocumentBytes)
	}
	message := &protobundle.Bundle{}
	err := verify.Guard(func() error { return protojson.Unmarshal(data, message) })
	if err != nil {
		return signed{}, errNoBundle
	}
	return checkedBundle(message, unlogged)
}

// checkedBundle makes sure that a bundle is bounded in what it makes others compute, before they do.
func checkedBundle(message *protobundle.Bundle, unlogged bool) (signed, error) {
	if material := message.GetVerificationMaterial(); unlogged && material != nil {
		material.TlogEntries, material.TimestampVerificationData = nil, nil
	}
	var checked *bundle.Bundle
	err := verify.Guard(func() (err error) {
		if err = checkMaterial(message.GetVerificationMaterial()); err == nil {
			checked, err = bundle.NewBundle(message)
		}
		return err
	})
	if err != nil {
		return signed{}, fetch.Errorf(fetch.InvalidContent, "the bundle is malformed: %s", verify.Text(err.Error()))
	}
	return signed{bundle: checked}, nil
}

// checkMaterial refuses keys that are not computed with, wherever they hide.
func checkMaterial(material *protobundle.VerificationMaterial) error {
	raw := [][]byte{material.GetCertificate().GetRawBytes()}
	for _, certificate := range material.GetX509CertificateChain().GetCertificates() {
		raw = append(raw, certificate.GetRawBytes())
	}
	for _, der := range raw {
		if certificate, err := x509.ParseCertificate(der); err == nil {
			if err := errors.Join(verify.CheckCertificates([]*x509.Certificate{certificate}), checkNames(certificate)); err != nil {
				return err
			}
		}
	}
	entries := material.GetTlogEntries()
	if len(entries) > maxLogEntries {
		return fetch.Errorf(fetch.LimitExceeded, "it has %d log entries: %d are the limit", len(entries), maxLogEntries)
	}
	for _, entry := range entries {
		if err := checkLogEntry(entry.GetCanonicalizedBody()); err != nil {
			return err
		}
	}
	timestamps := material.GetTimestampVerificationData().GetRfc3161Timestamps()
	if len(timestamps) > maxTimestamps {
		return fetch.Errorf(fetch.LimitExceeded, "it has %d timestamps: %d are the limit", len(timestamps), maxTimestamps)
	}
	for _, timestamp := range timestamps {
		if err := checkTimestamp(timestamp.GetSignedTimestamp()); err != nil {
			return err
		}
	}
	return nil
}
