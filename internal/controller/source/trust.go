// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
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

// demands returns the verification settings of a source, with the Secrets that hold its
// trust; nil for none.
func demands(source v1alpha1.Source) (demand any, from []*v1alpha1.LocalReference) {
	switch {
	case source.Image != nil && source.Image.Verify != nil:
		v := source.Image.Verify
		return v, []*v1alpha1.LocalReference{v.SecretRef, v.TrustedRootSecretRef}
	case source.Git != nil && source.Git.Verify != nil:
		v := source.Git.Verify
		return v, []*v1alpha1.LocalReference{&v.SecretRef}
	case source.HTTP != nil && source.HTTP.Verify != nil:
		v := source.HTTP.Verify
		return v, []*v1alpha1.LocalReference{v.SecretRef, v.TrustedRootSecretRef}
	}
	return nil, nil
}

// trust is a digest of the trust settings of a source: the verification settings and
// the versions of the Secrets. It does not reveal their contents. It is "" if no
// signature is required.
func (s *state) trust(source v1alpha1.Source) string {
	demand, from := demands(source)
	if demand == nil {
		return ""
	}
	hash := sha256.New()
	_ = json.NewEncoder(hash).Encode(demand) // plain structs can be encoded, and writes to a hash do not fail
	for _, ref := range from {
		if ref != nil {
			fmt.Fprintln(hash, ref.Name, s.secrets.seen[seenObject{"Secret", ref.Name}])
		}
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil))
}

// imageVerifier verifies an image; nil if no signature is required. The client checks
// for revocations.
func imageVerifier(ctx context.Context, s *secrets, v *v1alpha1.ImageVerification, client *http.Client) (image.Verifier, error) {
	switch {
	case v == nil:
		return nil, nil
	case v.Provider == "cosign":
		return cosignVerifier(ctx, s, cosignTrust{v.SecretRef, v.MatchOIDCIdentity, v.TrustedRootSecretRef, v.TransparencyLog})
	case v.Provider == "notation" && v.SecretRef != nil:
		secret, err := s.get(ctx, v.SecretRef.Name)
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
func cosignVerifier(ctx context.Context, s *secrets, trust cosignTrust) (*cosign.Verifier, error) {
	o := cosign.Options{IgnoreLog: trust.log == ignoreLog, Patterns: s.patterns}
	var from []string
	if trust.keys != nil {
		secret, err := s.get(ctx, trust.keys.Name)
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
		secret, err := s.get(ctx, trust.root.Name)
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
		err = fetch.Describe(err, "secret %s/%s", s.namespace, strings.Join(from, " or "))
	}
	return verifier, err
}

// archiveVerifier verifies an archive; nil if no signature is required.
func archiveVerifier(ctx context.Context, s *secrets, v *v1alpha1.ArchiveVerification) (archive.Verifier, error) {
	if v == nil {
		return nil, nil
	}
	return cosignVerifier(ctx, s, cosignTrust{v.SecretRef, v.MatchOIDCIdentity, v.TrustedRootSecretRef, v.TransparencyLog})
}

// gitVerification says which objects of a repository must be signed; nil for none.
func gitVerification(ctx context.Context, s *secrets, v *v1alpha1.GitVerification) (*git.Verification, error) {
	if v == nil {
		return nil, nil
	}
	secret, err := s.get(ctx, v.SecretRef.Name)
	if err != nil {
		return nil, err
	}
	keys, err := gitsig.ParseKeys(secret.Data)
	if err != nil {
		return nil, fetch.Describe(err, "secret %s/%s", secret.Namespace, secret.Name)
	}
	return &git.Verification{Mode: git.Mode(cmp.Or(v.Mode, string(git.VerifyHEAD))), Keys: keys}, nil
}
