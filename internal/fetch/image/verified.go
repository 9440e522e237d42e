// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// verified has every verifier accept an image, and returns the signers and the signatures, which are "" when one of them
// is too large to be kept.
func (f *Fetcher) verified(ctx context.Context, p place, digest fetch.Digest, subject kept) (by, signature string, err error) {
	var signers, signatures []string
	for _, v := range f.verify {
		signer, found, err := f.verifiedBy(ctx, v, p, digest, subject)
		if err != nil {
			return "", "", err
		}
		if !slices.Contains(signers, signer) {
			signers = append(signers, signer)
		}
		signatures = append(signatures, found)
	}
	return strings.Join(signers, " and "), joinSignatures(signatures), nil
}

// verifiedBy looks for a signature that one verifier accepts: beside the image, then at the other places.
func (f *Fetcher) verifiedBy(ctx context.Context, v Verifier, p place, digest fetch.Digest, subject kept) (by, signature string, err error) {
	places := f.signaturePlaces(p)
	failed := make([]error, 0, len(places))
	for _, at := range places {
		read := &recorder{Registry: at.registry, kept: subject}
		by, err := v.Verify(ctx, Subject{Repository: subject.Repository, Digest: digest, MediaType: subject.MediaType, Size: subject.Size, Registry: read})
		if err == nil && by == "" {
			err = fetch.Errorf(fetch.Unverified, "the signature names no signer")
		}
		if err == nil {
			return by, read.signature(), nil
		}
		failed = append(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return "", "", unverified(places, failed)
}

// unverified is the error of an image that was accepted at none of the places. Its reason is Unverified only if each of them
// answered: the signature may be at one that did not.
func unverified(places []place, failed []error) error {
	if len(failed) == 1 {
		return failed[0]
	}
	var words []string
	cause := failed[len(failed)-1]
	for i, err := range failed {
		words = append(words, places[i].label()+": "+err.Error())
		if reason := fetch.ReasonOf(err); reason != fetch.Unverified && fetch.ReasonOf(cause) == fetch.Unverified {
			cause = err
		}
	}
	var typed *fetch.Error
	if !errors.As(cause, &typed) {
		return cause
	}
	return &fetch.Error{Reason: typed.Reason, Err: reworded{strings.Join(words, "; "), cause}, RetryAfter: typed.RetryAfter}
}

// reworded is an error with another text.
type reworded struct {
	text string
	err  error
}

// Error implements error.
func (r reworded) Error() string { return r.text }

// Unwrap returns the error as it was.
func (r reworded) Unwrap() error { return r.err }

// decidedError is a failure that is the same at all places.
type decidedError struct{ error }

// Unwrap returns the failure.
func (d decidedError) Unwrap() error { return d.error }

// joinSignatures encodes what was kept of several signatures; that of one stays as it is.
func joinSignatures(signatures []string) string {
	if len(signatures) == 1 {
		return signatures[0]
	}
	var all []json.RawMessage
	for _, s := range signatures {
		if s == "" {
			return ""
		}
		all = append(all, json.RawMessage(s))
	}
	encoded, err := json.Marshal(all)
	if err != nil || len(encoded) > maxKept {
		return ""
	}
	return string(encoded)
}

// splitSignatures is the reverse of joinSignatures.
func splitSignatures(signature string) ([]kept, error) {
	var several []kept
	err := json.Unmarshal([]byte(signature), &several)
	if err != nil {
		var one kept
		err = json.Unmarshal([]byte(signature), &one)
		several = []kept{one}
	}
	if err != nil || len(several) == 0 {
		return nil, fetch.Errorf(fetch.Unverified, "the signature that was kept cannot be read")
	}
	return several, nil
}

// VerifyKept tells who signed the image with a digest, by the signatures that were kept when it was fetched
// (fetch.Resolved.Signature), without asking a registry. Each verifier has to accept one of them.
func VerifyKept(ctx context.Context, verifiers []Verifier, digest, signature string) (by string, err error) {
	signatures, err := splitSignatures(signature)
	if err != nil {
		return "", err
	}
	parsed, err := fetch.ParseDigest(digest)
	if err != nil {
		return "", err
	}
	var signers []string
	for _, v := range verifiers {
		signer, err := acceptedBy(ctx, v, parsed, signatures)
		if err != nil {
			return "", err
		}
		if !slices.Contains(signers, signer) {
			signers = append(signers, signer)
		}
	}
	if len(signers) == 0 {
		return "", fetch.Errorf(fetch.Unverified, "no signature is required")
	}
	return strings.Join(signers, " and "), nil
}

// acceptedBy looks for a kept signature that one verifier accepts.
func acceptedBy(ctx context.Context, v Verifier, digest fetch.Digest, signatures []kept) (by string, err error) {
	for _, k := range signatures {
		by, err = v.Verify(ctx, Subject{Repository: k.Repository, Digest: digest, MediaType: k.MediaType, Size: k.Size, Registry: replay{k}})
		if err == nil && by != "" {
			return by, nil
		}
		if err == nil {
			err = fetch.Errorf(fetch.Unverified, "the signature names no signer")
		}
	}
	return "", err
}
