// SPDX-License-Identifier: Apache-2.0

// Package cosign verifies what cosign signs: images and archives, with keys or with certificates that Fulcio issues
// for an identity ("keyless").
//
// Signatures of an image are looked for in both forms that cosign writes: as layers of the image with the tag
// "sha256-<hex>.sig", the newest first, and as Sigstore bundles that refer to the image. What must be signed is the
// digest that the reference of the source resolved to, be it an image or an index. A bundle has to sign the image
// (predicate https://sigstore.dev/cosign/sign/v1): an attestation about it, say of its vulnerabilities, is no approval.
// The name of the repository in a signature is not compared, as cosign does not either and mirrors would be shut out:
// who signs for several repositories and has to tell them apart uses a key or an identity for each.
//
// With keys alone, no entry in a transparency log is demanded, as in Flux: clusters without internet access could not have
// one. If a trusted root is given beside the keys, a signature needs an entry in a log of that root, unless the log is to
// be ignored: a thief of the key would strip the entry that reveals the theft. With identities, the certificate must come from an authority of the trusted root, be in one of its certificate
// logs, have been valid when the signature was made according to a log or a timestamp authority of the root, and the
// signature has to be in one of its logs. The trusted root always comes from the caller: nothing is downloaded.
package cosign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sigstore "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
	"github.com/satchel-dev/satchel/internal/pattern"
)

// KeySuffix ends the names of the entries of a Secret that are keys.
const KeySuffix = ".pub"

// Options is who is trusted: the owners of keys, or identities.
type Options struct {
	// Keys are the entries of a Secret. Each with a name that ends in KeySuffix has to be one public key as PEM (ECDSA P-256,
	// P-384, P-521; RSA of 2048 to 8192 bits; Ed25519); a signature by any one of them suffices. Other entries, such as
	// the private key that cosign puts beside it, are ignored.
	Keys map[string][]byte
	// Identities are who else is trusted instead of keys; one of them suffices.
	Identities []Identity
	// TrustedRoot is Sigstore's trusted_root.json. Identities need it. With keys, signatures have to be in one of its logs.
	TrustedRoot []byte
	// IgnoreLog accepts signatures by keys that are in no log although there is a trusted root, and looks at no entry.
	IgnoreLog bool
	// Patterns bounds the regular expressions of identities, of all that belongs to one object; nil for a budget of its own.
	Patterns *pattern.Budget
}

// Verifier accepts what one of the trusted signed. It can be used by several goroutines at once.
type Verifier struct {
	signers []signer
	// by describes the expected signer in messages.
	by string
	// unlogged tells that there is nothing to check log entries with, so that they are not even parsed.
	unlogged bool
}

var _ image.Verifier = (*Verifier)(nil)

// New returns a verifier. Trust that cannot be read, or none at all, is fetch.Refused, whatever else there is.
func New(o Options) (*Verifier, error) {
	root, err := parseRoot(o.TrustedRoot)
	if err != nil {
		return nil, err
	}
	switch {
	case len(o.Identities) > 0 && o.IgnoreLog:
		return nil, fetch.Errorf(fetch.Refused, "with identities the transparency log cannot be ignored: it tells when a certificate was used")
	case len(o.Identities) > 0 && len(o.Keys) > 0:
		return nil, fetch.Errorf(fetch.Refused, "cosign is given keys and identities: it has to be one of the two")
	case len(o.Identities) > 0:
		return forIdentities(o.Identities, root, cmp.Or(o.Patterns, pattern.NewBudget()))
	default:
		if o.IgnoreLog {
			root = nil
		}
		return forKeys(o.Keys, root)
	}
}

// Verify implements image.Verifier.
func (v *Verifier) Verify(ctx context.Context, s image.Subject) (string, error) {
	var attempts verify.Attempts
	left := verify.Candidates
	for _, find := range []func(context.Context, image.Subject, int, *verify.Attempts) ([]candidate, error){tagged, referring} {
		candidates, err := find(ctx, s, left, &attempts)
		if verify.Interrupts(err) {
			return "", fetch.Describe(err, "looking for signatures")
		}
		attempts.Missed(err)
		left -= len(candidates)
		if by, err := v.first(ctx, s, candidates, &attempts); by != "" || err != nil {
			return by, err
		}
	}
	return "", attempts.Error(v.by, "sign it with cosign sign")
}

// first returns who made the first signature that is accepted, "" when there is none.
func (v *Verifier) first(ctx context.Context, s image.Subject, candidates []candidate, attempts *verify.Attempts) (string, error) {
	for _, c := range candidates {
		if err := ctx.Err(); err != nil {
			return "", fetch.NetworkError(err)
		}
		signed, err := c(ctx, v.unlogged)
		if verify.Interrupts(err) {
			return "", fetch.Describe(err, "reading a signature")
		}
		if errors.Is(err, errOther) {
			continue
		}
		by := ""
		if err == nil {
			by, err = v.accept(ctx, signed, s.Digest)
		}
		if err == nil {
			return by, nil
		}
		attempts.Failed(err)
	}
	return "", nil
}

// accept tries all who are trusted, and returns the first who made the signature.
func (v *Verifier) accept(ctx context.Context, s signed, digest fetch.Digest) (string, error) {
	var failure error
	for _, signer := range v.signers {
		if err := ctx.Err(); err != nil {
			return "", fetch.NetworkError(err)
		}
		var result *sigstore.VerificationResult
		err := verify.Guard(func() (err error) {
			result, err = signer.verify(s, digest)
			return err
		})
		if err == nil {
			return verify.Text("cosign " + signer.name(result)), nil
		}
		failure = err
	}
	return "", failure
}

// among lists names for people, not too many of them.
func among(kind string, names []string) string {
	slices.Sort(names)
	if len(names) == 1 {
		return kind + " " + names[0]
	}
	const shown = 3
	if len(names) > shown {
		names = append(names[:shown:shown], fmt.Sprintf("%d more", len(names)-shown))
	}
	return "any of " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
