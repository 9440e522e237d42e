// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"strings"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// Annotations of a layer that is a signature of the older form.
const (
	signatureAnnotation   = "dev.cosignproject.cosign/signature"
	certificateAnnotation = "dev.sigstore.cosign/certificate"
	logAnnotation         = "dev.sigstore.cosign/bundle"
	timestampAnnotation   = "dev.sigstore.cosign/rfc3161timestamp"
)

// simpleBundleType is the oldest form of a bundle, which has just what the annotations have.
const simpleBundleType = "application/vnd.dev.sigstore.bundle+json;version=0.1"

// payloadType is what cosign writes for an image.
const payloadType = "cosign container image signature"

// simpleSigning is the payload of a signature of the older form: containers-signature(5).
type simpleSigning struct {
	Critical struct {
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
}

// simple turns a signature of the older form into a bundle, after a look at what it claims to sign.
func simple(payload []byte, annotations map[string]string, digest fetch.Digest, unlogged bool) (signed, error) {
	var claim simpleSigning
	if err := json.Unmarshal(payload, &claim); err != nil {
		return signed{}, fetch.Errorf(fetch.InvalidContent, "its payload is no JSON document")
	}
	if claim.Critical.Type != payloadType {
		return signed{}, fetch.Errorf(fetch.InvalidContent, "its payload is of the type %s instead of %q", fetch.Quote(claim.Critical.Type), payloadType)
	}
	if claim.Critical.Image.Digest != digest.String() {
		return signed{}, fetch.Errorf(fetch.InvalidContent, "it signs %s", fetch.Quote(claim.Critical.Image.Digest))
	}
	material, err := simpleMaterial(annotations)
	if err != nil {
		return signed{}, err
	}
	rawSignature, err := base64.StdEncoding.DecodeString(annotations[signatureAnnotation])
	if err != nil || len(rawSignature) == 0 {
		return signed{}, malformed(signatureAnnotation)
	}
	sum := sha256.Sum256(payload)
	result, err := checkedBundle(&protobundle.Bundle{
		MediaType:            simpleBundleType,
		VerificationMaterial: material,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     rawSignature,
		}},
	}, unlogged)
	result.payload = payload
	return result, err
}

func malformed(annotation string) error {
	return fetch.Errorf(fetch.InvalidContent, "its annotation %s is malformed", annotation)
}

// simpleMaterial reads the certificate, the log entry and the timestamp.
func simpleMaterial(annotations map[string]string) (*protobundle.VerificationMaterial, error) {
	material := &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}},
	}
	for _, part := range []struct {
		name string
		read func(string, *protobundle.VerificationMaterial) bool
	}{{certificateAnnotation, simpleCertificate}, {logAnnotation, simpleLogEntry}, {timestampAnnotation, simpleTimestamp}} {
		text := annotations[part.name]
		if text == "" {
			continue
		}
		if len(text) > verify.DocumentBytes || !part.read(text, material) {
			return nil, malformed(part.name)
		}
	}
	return material, nil
}

func simpleCertificate(text string, material *protobundle.VerificationMaterial) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" {
		return false
	}
	material.Content = &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
		Certificates: []*protocommon.X509Certificate{{RawBytes: block.Bytes}},
	}}
	return true
}

// simpleLogEntry reads an entry of a log with the log's promise to include it.
func simpleLogEntry(text string, material *protobundle.VerificationMaterial) bool {
	var entry struct {
		SignedEntryTimestamp []byte
		Payload              struct {
			Body           []byte `json:"body"`
			IntegratedTime int64  `json:"integratedTime"`
			LogIndex       int64  `json:"logIndex"`
			LogID          string `json:"logID"`
		}
	}
	var kind struct {
		Kind    string `json:"kind"`
		Version string `json:"apiVersion"`
	}
	if json.Unmarshal([]byte(text), &entry) != nil || json.Unmarshal(entry.Payload.Body, &kind) != nil {
		return false
	}
	id, err := hex.DecodeString(strings.ToLower(entry.Payload.LogID))
	if err != nil {
		return false
	}
	material.TlogEntries = []*protorekor.TransparencyLogEntry{{
		LogIndex:          entry.Payload.LogIndex,
		LogId:             &protocommon.LogId{KeyId: id},
		KindVersion:       &protorekor.KindVersion{Kind: kind.Kind, Version: kind.Version},
		IntegratedTime:    entry.Payload.IntegratedTime,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: entry.SignedEntryTimestamp},
		CanonicalizedBody: entry.Payload.Body,
	}}
	return true
}

func simpleTimestamp(text string, material *protobundle.VerificationMaterial) bool {
	var timestamp struct{ SignedRFC3161Timestamp []byte }
	if json.Unmarshal([]byte(text), &timestamp) != nil {
		return false
	}
	material.TimestampVerificationData = &protobundle.TimestampVerificationData{
		Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: timestamp.SignedRFC3161Timestamp}},
	}
	return true
}
