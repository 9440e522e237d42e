// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"

	"github.com/digitorus/pkcs7"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// checkLogEntry looks for keys in a log entry that are not computed with. The library verifies the signature of an
// entry with the key in the entry while it parses it, before anything is known to be in a log.
//
// Keys are PEM in base64, up to twice, in any string of the JSON document.
func checkLogEntry(body []byte) error {
	if len(body) > maxEntryBytes {
		return fetch.Errorf(fetch.LimitExceeded, "a log entry has %d bytes: %d are the limit", len(body), maxEntryBytes)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil // at the end, or not JSON, which the library says better
		}
		if text, ok := token.(string); ok {
			if err := checkPEM([]byte(text), 2); err != nil {
				return err
			}
		}
	}
}

// checkPEM checks the keys in a text and in what it may be the base64 form of.
func checkPEM(text []byte, depth int) error {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if err := checkDER(block.Bytes); err != nil {
			return err
		}
	}
	if depth == 0 {
		return nil
	}
	decoded, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(decoded) == 0 {
		return nil
	}
	return checkPEM(decoded, depth-1)
}

func checkDER(der []byte) error {
	if certificate, err := x509.ParseCertificate(der); err == nil {
		return verify.CheckCertificates([]*x509.Certificate{certificate})
	}
	if key, err := x509.ParsePKIXPublicKey(der); err == nil {
		return verify.CheckKey(key)
	}
	if key, err := x509.ParsePKCS1PublicKey(der); err == nil {
		return verify.CheckKey(key)
	}
	return nil
}

// timestampResponse is the outermost form of RFC 3161, section 2.4.2.
type timestampResponse struct {
	Status asn1.RawValue
	Token  asn1.RawValue
}

// checkTimestamp looks for keys in a timestamp that are not computed with. The library verifies a timestamp with
// the certificates in it before it asks who issued them.
func checkTimestamp(der []byte) error {
	if len(der) > maxTimestampBytes {
		return fetch.Errorf(fetch.LimitExceeded, "a timestamp has %d bytes: %d are the limit", len(der), maxTimestampBytes)
	}
	var response timestampResponse
	if _, err := asn1.Unmarshal(der, &response); err != nil {
		return errors.New("a timestamp is malformed")
	}
	token, err := pkcs7.Parse(response.Token.FullBytes)
	if err != nil {
		return errors.New("a timestamp is malformed")
	}
	return verify.CheckCertificates(token.Certificates)
}
