// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// VerifyBlob says for people who signed the content with a SHA-256 digest, given what cosign sign-blob wrote: a
// Sigstore bundle, or for keys also the bare signature in base64.
func (v *Verifier) VerifyBlob(ctx context.Context, digest fetch.Digest, document []byte) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fetch.NetworkError(err)
	}
	sum, ok := strings.CutPrefix(digest.String(), "sha256:")
	if !ok {
		return "", fetch.Errorf(fetch.Refused, "a detached signature is verified by the SHA-256 digest, not by %s", digest)
	}
	var attempts verify.Attempts
	signature, err := v.parseBlob(sum, document)
	if err == nil {
		by, failure := v.accept(ctx, signature, digest)
		if failure == nil {
			return by, nil
		}
		err = failure
	}
	attempts.Failed(err)
	return "", attempts.Error(v.by, "")
}

func (v *Verifier) parseBlob(sum string, document []byte) (signed, error) {
	document = bytes.TrimSpace(document)
	if len(document) > verify.DocumentBytes {
		return signed{}, fetch.Errorf(fetch.LimitExceeded, "it has more than %d bytes", verify.DocumentBytes)
	}
	if bytes.HasPrefix(document, []byte("{")) {
		parsed, err := parseBundle(document, v.unlogged)
		if errors.Is(err, errNoBundle) {
			err = fetch.Errorf(fetch.InvalidContent, "%w: use what cosign sign-blob --bundle writes, before version 3 with --new-bundle-format", err)
		}
		return parsed, err
	}
	signature, err := base64.StdEncoding.DecodeString(string(document))
	if err != nil || len(signature) == 0 {
		return signed{}, fetch.Errorf(fetch.InvalidContent, "it is neither a Sigstore bundle nor a signature in base64")
	}
	raw, err := hex.DecodeString(sum)
	if err != nil {
		return signed{}, err
	}
	return checkedBundle(&protobundle.Bundle{
		MediaType: simpleBundleType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}},
		},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: raw},
			Signature:     signature,
		}},
	}, v.unlogged)
}
