// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore-go/pkg/root"
	sigstore "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// signature predicates: what a statement has to say about an image.
const signPredicate = "https://sigstore.dev/cosign/sign/v1"

// signer is who is trusted.
type signer struct {
	// verifier checks a signature with its log entries and timestamps, where they are asked for.
	verifier *sigstore.Verifier
	// logged asks for an entry in a log.
	logged bool
	policy []sigstore.PolicyOption
	// name says for people who made a signature.
	name func(*sigstore.VerificationResult) string
}

// verify checks that the signer signed what has the digest.
func (s signer) verify(what signed, digest fetch.Digest) (*sigstore.VerificationResult, error) {
	artifact, err := what.artifact(digest)
	if err != nil {
		return nil, err
	}
	if s.logged && len(what.bundle.GetVerificationMaterial().GetTlogEntries()) == 0 {
		return nil, errors.New("it has no entry in a transparency log, which is required beside a trusted root (transparencyLog: Ignore does without)")
	}
	result, err := s.verifier.Verify(what.bundle, sigstore.NewPolicy(artifact, s.policy...))
	if err != nil {
		return nil, err
	}
	if result.Statement != nil && result.Statement.GetPredicateType() != signPredicate {
		return nil, fmt.Errorf("it states %s, which is no signature", fetch.Quote(result.Statement.GetPredicateType()))
	}
	return result, nil
}

// artifact returns what has to be signed: the payload, where that is known, else what has the digest.
func (s signed) artifact(digest fetch.Digest) (sigstore.ArtifactPolicyOption, error) {
	if s.payload != nil {
		return sigstore.WithArtifact(bytes.NewReader(s.payload)), nil
	}
	raw, err := hex.DecodeString(digest.Encoded())
	return sigstore.WithArtifactDigest(digest.Algorithm().String(), raw), err
}

// parseRoot reads a trusted_root.json; nil for none.
func parseRoot(data []byte) (*root.TrustedRoot, error) {
	if data == nil {
		return nil, nil
	}
	var parsed *root.TrustedRoot
	err := verify.Guard(func() (err error) {
		parsed, err = root.NewTrustedRootFromJSON(data)
		return err
	})
	if err != nil || len(data) > verify.EntryBytes {
		return nil, fetch.Errorf(fetch.Refused, "the trusted root is not one of Sigstore in JSON: %s", rootHint)
	}
	return parsed, nil
}

// rootHint tells where a trusted root comes from.
const rootHint = "create it with cosign trusted-root create --with-default-services, and store it as trusted_root.json"
