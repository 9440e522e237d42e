// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"crypto/x509"
	"encoding/json"
	"errors"

	"github.com/notaryproject/notation-core-go/signature/cose"
	"github.com/notaryproject/notation-core-go/signature/jws"
	"github.com/notaryproject/tspclient-go"
	sign1 "github.com/veraison/go-cose"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// Limits on what an envelope holds.
const (
	maxChain          = 10
	maxTimestampBytes = 16 << 10
)

// timestampHeader is where envelopes keep a timestamp.
const timestampHeader = "io.cncf.notary.timestampSignature"

// checkEnvelope looks for keys in an envelope that are not computed with. The library verifies its certificates, which
// anybody may have made, before it asks who issued them.
func checkEnvelope(mediaType string, data []byte) error {
	var chain [][]byte
	var timestamp []byte
	var err error
	switch mediaType {
	case jws.MediaTypeEnvelope:
		chain, timestamp, err = jwsCertificates(data)
	case cose.MediaTypeEnvelope:
		chain, timestamp, err = coseCertificates(data)
	default:
		err = fetch.Errorf(fetch.InvalidContent, "the type of the signature is %s instead of %s or %s",
			fetch.Quote(mediaType), jws.MediaTypeEnvelope, cose.MediaTypeEnvelope)
	}
	if err != nil {
		return err
	}
	if err := checkChain(chain); err != nil || len(timestamp) == 0 {
		return err
	}
	return checkTimestamp(timestamp)
}

var errMalformed = errors.New("the signature is malformed")

func jwsCertificates(data []byte) (chain [][]byte, timestamp []byte, err error) {
	var envelope struct {
		Header struct {
			Chain     [][]byte `json:"x5c"`
			Timestamp []byte   `json:"io.cncf.notary.timestampSignature"`
		} `json:"header"`
	}
	if err := json.Unmarshal(data, &envelope); err != nil {
		return nil, nil, errMalformed
	}
	return envelope.Header.Chain, envelope.Header.Timestamp, nil
}

func coseCertificates(data []byte) (chain [][]byte, timestamp []byte, err error) {
	var envelope sign1.Sign1Message
	if err := envelope.UnmarshalCBOR(data); err != nil {
		return nil, nil, errMalformed
	}
	certificates, ok := envelope.Headers.Unprotected[sign1.HeaderLabelX5Chain].([]any)
	if !ok {
		return nil, nil, errMalformed
	}
	for _, certificate := range certificates {
		raw, ok := certificate.([]byte)
		if !ok {
			return nil, nil, errMalformed
		}
		chain = append(chain, raw)
	}
	timestamp, _ = envelope.Headers.Unprotected[timestampHeader].([]byte)
	return chain, timestamp, nil
}

func checkChain(chain [][]byte) error {
	if len(chain) == 0 || len(chain) > maxChain {
		return fetch.Errorf(fetch.InvalidContent, "the signature has %d certificates: 1 to %d are accepted", len(chain), maxChain)
	}
	for _, raw := range chain {
		certificate, err := x509.ParseCertificate(raw)
		if err != nil {
			return errMalformed
		}
		if err := verify.CheckCertificates([]*x509.Certificate{certificate}); err != nil {
			return err
		}
	}
	return nil
}

func checkTimestamp(raw []byte) error {
	if len(raw) > maxTimestampBytes {
		return fetch.Errorf(fetch.LimitExceeded, "the timestamp has %d bytes: %d are the limit", len(raw), maxTimestampBytes)
	}
	token, err := tspclient.ParseSignedToken(raw)
	if err != nil {
		return errMalformed
	}
	if len(token.Certificates) > maxChain {
		return fetch.Errorf(fetch.LimitExceeded, "the timestamp has %d certificates: %d are the limit", len(token.Certificates), maxChain)
	}
	return verify.CheckCertificates(token.Certificates)
}
