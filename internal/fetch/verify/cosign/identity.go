// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"regexp"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	sigstore "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Identity matches certificates: both the issuer of the identity and its subject have to match, each a regular
// expression in RE2 syntax. As in Flux they are not anchored: write ^ and $.
type Identity struct {
	Issuer, Subject string
}

// Limits on identities.
const (
	maxIdentities = 64
	maxPattern    = 1024
)

func forIdentities(identities []Identity, trusted *root.TrustedRoot) (*Verifier, error) {
	if err := checkRoot(trusted); err != nil {
		return nil, err
	}
	if len(identities) > maxIdentities {
		return nil, fetch.Errorf(fetch.Refused, "%d identities are given: %d are the limit", len(identities), maxIdentities)
	}
	verifier, err := sigstore.NewVerifier(trusted, sigstore.WithSignedCertificateTimestamps(1),
		sigstore.WithTransparencyLog(1), sigstore.WithObserverTimestamps(1))
	if err != nil {
		return nil, err
	}
	v := &Verifier{by: "the identity that is asked for"}
	if len(identities) > 1 {
		v.by = "any of the identities that are asked for"
	}
	// One at a time, so that the subject of one is never taken with the issuer of another.
	for number, identity := range identities {
		policy, err := identity.policy()
		if err != nil {
			return nil, fetch.Describe(err, "identity %d", number+1)
		}
		v.signers = append(v.signers, signer{verifier: verifier, policy: []sigstore.PolicyOption{policy}, name: certificateName})
	}
	return v, nil
}

// checkRoot wants everything that keyless signatures are checked with, so that nothing goes unchecked.
func checkRoot(trusted *root.TrustedRoot) error {
	var missing string
	switch {
	case trusted == nil:
		return fetch.Errorf(fetch.Refused, "identities need a trusted root: %s", rootHint)
	case len(trusted.FulcioCertificateAuthorities()) == 0:
		missing = "certificate authority"
	case len(trusted.CTLogs()) == 0:
		missing = "certificate transparency log"
	case len(trusted.RekorLogs()) == 0:
		missing = "transparency log"
	default:
		return nil
	}
	return fetch.Errorf(fetch.Refused, "the trusted root has no %s, so that identities cannot be verified: %s", missing, rootHint)
}

func (i Identity) policy() (sigstore.PolicyOption, error) {
	for _, part := range []struct{ name, pattern string }{{"issuer", i.Issuer}, {"subject", i.Subject}} {
		if err := checkPattern(part.pattern); err != nil {
			return nil, fetch.Describe(err, "the %s", part.name)
		}
	}
	subject, err := sigstore.NewSANMatcher("", i.Subject)
	if err != nil {
		return nil, err
	}
	issuer, err := sigstore.NewIssuerMatcher("", i.Issuer)
	if err != nil {
		return nil, err
	}
	identity, err := sigstore.NewCertificateIdentity(subject, issuer, certificate.Extensions{})
	return sigstore.WithCertificateIdentity(identity), err
}

// checkPattern refuses what is no regular expression, and what everybody matches.
func checkPattern(pattern string) error {
	if len(pattern) > maxPattern {
		return fetch.Errorf(fetch.Refused, "has %d bytes: %d are the limit", len(pattern), maxPattern)
	}
	compiled, err := regexp.Compile(pattern)
	switch {
	case err != nil:
		return fetch.Errorf(fetch.Refused, "%s is no regular expression: %w", fetch.Quote(pattern), err)
	case compiled.MatchString(""):
		return fetch.Errorf(fetch.Refused, "%s matches everybody: write what has to be there", fetch.Quote(pattern))
	}
	return nil
}

// certificateName says whom the certificate of a signature was issued to.
func certificateName(result *sigstore.VerificationResult) string {
	summary := result.Signature.Certificate
	return summary.SubjectAlternativeName + " (" + summary.Issuer + ")"
}
