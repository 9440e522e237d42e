// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"crypto/x509"
	"encoding/asn1"
	"regexp/syntax"
	"slices"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	sigstore "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/pattern"
)

// Identity matches certificates: both the issuer of the identity and its subject have to match. Of each, one form is given:
// the exact value, or a regular expression in RE2 syntax that is anchored at both ends.
type Identity struct {
	Issuer, IssuerRegExp   string
	Subject, SubjectRegExp string
}

// Limits on identities.
const (
	maxIdentities = 64
	maxExact      = 1024
	// maxNames bounds the names in a certificate, in bytes: patterns are matched against them.
	maxNames = 2048
)

func forIdentities(identities []Identity, trusted *root.TrustedRoot, budget *pattern.Budget) (*Verifier, error) {
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
		policy, err := identity.policy(budget)
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

func (i Identity) policy(budget *pattern.Budget) (sigstore.PolicyOption, error) {
	for _, part := range []struct{ name, exact, expression string }{{"issuer", i.Issuer, i.IssuerRegExp}, {"subject", i.Subject, i.SubjectRegExp}} {
		if err := checkPart(part.name, part.exact, part.expression, budget); err != nil {
			return nil, err
		}
	}
	subject, err := sigstore.NewSANMatcher(i.Subject, i.SubjectRegExp)
	if err != nil {
		return nil, err
	}
	issuer, err := sigstore.NewIssuerMatcher(i.Issuer, i.IssuerRegExp)
	if err != nil {
		return nil, err
	}
	identity, err := sigstore.NewCertificateIdentity(subject, issuer, certificate.Extensions{})
	return sigstore.WithCertificateIdentity(identity), err
}

// checkPart wants one of both forms, and judges an expression before anything compiles it.
func checkPart(name, exact, expression string, budget *pattern.Budget) error {
	switch {
	case (exact == "") == (expression == ""):
		return fetch.Errorf(fetch.Refused, "give either %s or %sRegExp", name, name)
	case len(exact) > maxExact:
		return fetch.Errorf(fetch.Refused, "%s has %d bytes: %d are the limit", name, len(exact), maxExact)
	case exact != "":
		return nil
	}
	compiled, err := pattern.Compile(expression, budget)
	if err != nil {
		return fetch.Errorf(fetch.Refused, "%sRegExp: %w", name, err)
	}
	if !anchored(expression) {
		return fetch.Errorf(fetch.Refused, "%sRegExp: %s is not anchored, so that it matches names that only contain what it "+
			"describes: begin it with ^ and end it with $, around all of it, or give %s", name, fetch.Quote(expression), name)
	}
	if compiled.MatchString("") {
		return fetch.Errorf(fetch.Refused, "%sRegExp: %s matches everybody: write what has to be there", name, fetch.Quote(expression))
	}
	return nil
}

// anchored tells whether an expression can match nothing but a whole text.
func anchored(expression string) bool {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	return err == nil && bound(parsed, syntax.OpBeginText) && bound(parsed, syntax.OpEndText)
}

// bound tells whether every way through an expression begins, or ends, with the anchor.
func bound(e *syntax.Regexp, anchor syntax.Op) bool {
	switch e.Op {
	case anchor:
		return true
	case syntax.OpCapture:
		return bound(e.Sub[0], anchor)
	case syntax.OpConcat:
		outer := e.Sub[0]
		if anchor == syntax.OpEndText {
			outer = e.Sub[len(e.Sub)-1]
		}
		return bound(outer, anchor)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(e.Sub, func(way *syntax.Regexp) bool { return !bound(way, anchor) })
	default:
		return false
	}
}

// oidNames is the extension of a certificate with its names (RFC 5280, section 4.2.1.6).
var oidNames = asn1.ObjectIdentifier{2, 5, 29, 17}

// checkNames refuses certificates with names of a length that no identity has.
func checkNames(c *x509.Certificate) error {
	for _, extension := range c.Extensions {
		if extension.Id.Equal(oidNames) && len(extension.Value) > maxNames {
			return fetch.Errorf(fetch.LimitExceeded, "its certificate has %d bytes of names: %d are the limit", len(extension.Value), maxNames)
		}
	}
	return nil
}

// certificateName is the identity that the certificate of a signature was issued to.
func certificateName(result *sigstore.VerificationResult) string {
	summary := result.Signature.Certificate
	return summary.SubjectAlternativeName + " (" + summary.Issuer + ")"
}
