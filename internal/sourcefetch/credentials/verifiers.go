// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git"
	archive "github.com/satchel-dev/satchel/internal/fetch/http"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
	"github.com/satchel-dev/satchel/internal/fetch/verify/cosign"
	"github.com/satchel-dev/satchel/internal/fetch/verify/gitsig"
	"github.com/satchel-dev/satchel/internal/fetch/verify/notation"
)

// The keys of Secrets with trust have the file names of the tools.
const (
	keyTrustedRoot = "trusted_root.json"
	keyTrustPolicy = notation.PolicyName
)

// ImageVerifier verifies an image; nil if no signature is required. The client checks
// for revocations.
func ImageVerifier(ctx context.Context, s *Secrets, v *v1alpha1.ImageVerification, client *http.Client) (image.Verifier, error) {
	switch {
	case v == nil:
		return nil, nil
	case v.Provider == "cosign":
		return cosignVerifier(ctx, s, cosignTrust{v.SecretRef, v.MatchOIDCIdentity, v.TrustedRootSecretRef, v.TransparencyLog})
	case v.Provider == "notation" && v.SecretRef != nil:
		secret, err := s.Get(ctx, v.SecretRef.Name)
		if err != nil {
			return nil, err
		}
		verifier, err := notation.New(notation.Options{Policy: secret.Data[keyTrustPolicy], Certificates: secret.Data, Client: client})
		if err != nil {
			return nil, fetch.Describe(err, "secret %s/%s", secret.Namespace, secret.Name)
		}
		return verifier, nil
	}
	return nil, fetch.Errorf(fetch.Refused, "verify: the provider %s is not known, or has no secretRef", fetch.Quote(v.Provider))
}

// cosignTrust are the keys and identities of accepted cosign signatures.
type cosignTrust struct {
	keys       *v1alpha1.LocalReference
	identities []v1alpha1.OIDCIdentity
	root       *v1alpha1.LocalReference
	log        string // Required, the default for "", or Ignore
}

// ignoreLog is the value of transparencyLog that requires no entry.
const ignoreLog = "Ignore"

// cosignVerifier accepts signatures by keys or by identities.
func cosignVerifier(ctx context.Context, s *Secrets, trust cosignTrust) (*cosign.Verifier, error) {
	o := cosign.Options{IgnoreLog: trust.log == ignoreLog, Patterns: s.Patterns}
	var from []string
	if trust.keys != nil {
		secret, err := s.Get(ctx, trust.keys.Name)
		if err != nil {
			return nil, err
		}
		o.Keys = secret.Data
		from = append(from, trust.keys.Name)
	}
	for _, i := range trust.identities {
		o.Identities = append(o.Identities, cosign.Identity{
			Issuer: i.Issuer, IssuerRegExp: i.IssuerRegExp, Subject: i.Subject, SubjectRegExp: i.SubjectRegExp,
		})
	}
	if trust.root != nil {
		secret, err := s.Get(ctx, trust.root.Name)
		if err != nil {
			return nil, err
		}
		if o.TrustedRoot = secret.Data[keyTrustedRoot]; len(o.TrustedRoot) == 0 {
			return nil, malformed(secret, "%w, as it has no %s: see cosign trusted-root create", verify.ErrNoTrust, keyTrustedRoot)
		}
		from = append(from, trust.root.Name)
	}
	verifier, err := cosign.New(o)
	if err != nil && len(from) > 0 {
		err = fetch.Describe(err, "secret %s/%s", s.Namespace, strings.Join(from, " or "))
	}
	return verifier, err
}

// ArchiveVerifier verifies an archive; nil if no signature is required.
func ArchiveVerifier(ctx context.Context, s *Secrets, v *v1alpha1.ArchiveVerification) (archive.Verifier, error) {
	if v == nil {
		return nil, nil
	}
	return cosignVerifier(ctx, s, cosignTrust{v.SecretRef, v.MatchOIDCIdentity, v.TrustedRootSecretRef, v.TransparencyLog})
}

// GitVerification says which objects of a repository must be signed; nil for none.
func GitVerification(ctx context.Context, s *Secrets, v *v1alpha1.GitVerification) (*git.Verification, error) {
	if v == nil {
		return nil, nil
	}
	secret, err := s.Get(ctx, v.SecretRef.Name)
	if err != nil {
		return nil, err
	}
	keys, err := gitsig.ParseKeys(secret.Data)
	if err != nil {
		return nil, fetch.Describe(err, "secret %s/%s", secret.Namespace, secret.Name)
	}
	return &git.Verification{Mode: git.Mode(cmp.Or(v.Mode, string(git.VerifyHEAD))), Keys: keys}, nil
}
