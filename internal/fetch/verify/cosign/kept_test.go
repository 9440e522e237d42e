// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/tests/images"
)

// TestM34JudgedWithoutTheRegistry: the signature that was kept is judged by another trust, and binds the digest.
func TestM34JudgedWithoutTheRegistry(t *testing.T) {
	s := newStandIn(t)
	pair, wrong := ecdsaKey(t), ecdsaKey(t)
	forms := map[string]struct {
		sign   func(ref name.Digest)
		by, no Options
	}{
		"Tag": {func(ref name.Digest) {
			attach(t, ref, claim(t, ref), wrong.sign(t, claim(t, ref)))
			attach(t, ref, claim(t, ref), pair.sign(t, claim(t, ref)))
		}, Options{Keys: keys(t, pair)}, Options{Keys: keys(t, ecdsaKey(t))}},
		"Bundle": {func(ref name.Digest) {
			refer(t, ref, marshal(t, pair.envelope(t, ref.DigestStr(), signPredicate)), signPredicate)
		},
			Options{Keys: keys(t, pair)}, Options{Keys: keys(t, ecdsaKey(t))}},
		"Keyless": {func(ref name.Digest) { keylessSignature{holder: jane}.refer(t, s, ref) },
			Options{Identities: []Identity{isJane}, TrustedRoot: s.trust(t)}, Options{Identities: []Identity{isAction}, TrustedRoot: s.trust(t)}},
	}
	for title, form := range forms {
		t.Run(title, func(t *testing.T) {
			r := images.New(t, true)
			ref := r.Image(t)
			form.sign(ref)
			resolved, err := images.Fetcher(t, ref.String(), verifier(t, form.by)).Verify(t.Context(), fetch.Resolved{Digest: ref.DigestStr()})
			if err != nil || resolved.Signature == "" {
				t.Fatalf("nothing is kept: %v", err)
			}
			if by, err := image.VerifyKept(t.Context(), []image.Verifier{verifier(t, form.by)}, resolved.Digest, resolved.Signature); err != nil || by != resolved.VerifiedBy {
				t.Errorf("by the same trust: %q, %v", by, err)
			}
			if by, err := image.VerifyKept(t.Context(), []image.Verifier{verifier(t, form.no)}, resolved.Digest, resolved.Signature); fetch.ReasonOf(err) != fetch.Unverified {
				t.Errorf("by another trust: %q, %v", by, err)
			}
			other := "sha256:" + strings.Repeat("a", 64)
			if by, err := image.VerifyKept(t.Context(), []image.Verifier{verifier(t, form.by)}, other, resolved.Signature); err == nil {
				t.Errorf("for another image: %q", by)
			}
		})
	}
}
