// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"context"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	upstream "github.com/sigstore/cosign/v3/pkg/cosign"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/images"
)

// signs are the two forms of a signature.
var forms = map[string]func(signingKey, testing.TB, name.Digest){
	"Tag": signingKey.tag, "Bundle": signingKey.refer,
}

// TestM14Keys signs with the libraries of cosign, and verifies with ours and with cosign's: they agree.
func TestM14Keys(t *testing.T) {
	right, wrong := ecdsaKey(t), ecdsaKey(t)
	cases := map[string]struct {
		reason string
		sign   func(t *testing.T, r *images.Repository, sign func(signingKey, testing.TB, name.Digest)) name.Digest
		by     string // "" for no signer
	}{
		"Signed": {"the normal case", func(t *testing.T, r *images.Repository, sign func(signingKey, testing.TB, name.Digest)) name.Digest {
			ref := r.Image(t)
			sign(right, t, ref)
			return ref
		}, "cosign key a.pub"},
		"Unsigned": {"it is not signed", func(t *testing.T, r *images.Repository, _ func(signingKey, testing.TB, name.Digest)) name.Digest {
			return r.Image(t)
		}, ""},
		"WrongKey": {"another key signed it", func(t *testing.T, r *images.Repository, sign func(signingKey, testing.TB, name.Digest)) name.Digest {
			ref := r.Image(t)
			sign(wrong, t, ref)
			return ref
		}, ""},
		"BothKeys": {"one of several signatures suffices", func(t *testing.T, r *images.Repository, sign func(signingKey, testing.TB, name.Digest)) name.Digest {
			ref := r.Image(t)
			sign(wrong, t, ref)
			sign(right, t, ref)
			return ref
		}, "cosign key a.pub"},
		"OtherImage": {"another image of the repository is signed", func(t *testing.T, r *images.Repository, sign func(signingKey, testing.TB, name.Digest)) name.Digest {
			sign(right, t, r.Image(t))
			return r.Image(t)
		}, ""},
		"Index": {"the reference resolves to an index, and that is signed", func(t *testing.T, r *images.Repository, sign func(signingKey, testing.TB, name.Digest)) name.Digest {
			index, _ := r.Index(t)
			sign(right, t, index)
			return index
		}, "cosign key a.pub"},
		"OnlyChild": {"the reference resolves to an index, and only an image of it is signed", func(t *testing.T, r *images.Repository, sign func(signingKey, testing.TB, name.Digest)) name.Digest {
			index, child := r.Index(t)
			sign(right, t, child)
			return index
		}, ""},
		"OnlyIndex": {"the reference names the image, and only the index is signed", func(t *testing.T, r *images.Repository, sign func(signingKey, testing.TB, name.Digest)) name.Digest {
			index, child := r.Index(t)
			sign(right, t, index)
			return child
		}, ""},
	}
	for name, tc := range cases {
		for form, sign := range forms {
			for api, support := range map[string]bool{"API": true, "NoAPI": false} {
				t.Run(name+form+api, func(t *testing.T) {
					r := images.New(t, support)
					ref := tc.sign(t, r, sign)
					by, err := images.Verified(t, ref.String(), verifier(t, Options{Keys: keys(t, right)}))
					if by != tc.by || (err == nil) != (tc.by != "") || err != nil && fetch.ReasonOf(err) != fetch.Unverified {
						t.Errorf("%s: %q, %v", tc.reason, by, err)
					}
					if err := cosignVerifies(t, ref, form == "Bundle", right); (err == nil) != (tc.by != "") {
						t.Errorf("%s: cosign says %v", tc.reason, err)
					}
				})
			}
		}
	}
}

// cosignVerifies asks cosign.
func cosignVerifies(t *testing.T, ref name.Digest, bundles bool, pair signingKey) error {
	t.Helper()
	key, err := signature.LoadDefaultVerifier(pair.GetPublicKey())
	if err != nil {
		t.Fatal(err)
	}
	options := &upstream.CheckOpts{
		SigVerifier: key, IgnoreTlog: true, Offline: true, ClaimVerifier: upstream.SimpleClaimVerifier, NewBundleFormat: bundles,
		RegistryClientOpts: []ociremote.Option{},
	}
	if bundles {
		options.ClaimVerifier = upstream.IntotoSubjectClaimVerifier
		_, _, err = upstream.VerifyImageAttestations(context.Background(), ref, options)
	} else {
		_, _, err = upstream.VerifyImageSignatures(context.Background(), ref, options)
	}
	return err
}

var _ = protocommon.PublicKeyDetails_PKIX_ED25519
