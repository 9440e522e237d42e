// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/notation-core-go/signature/cose"
	"github.com/notaryproject/notation-core-go/signature/jws"
	upstream "github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/signer"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/images"
)

// trust is a Secret with a policy that has one statement.
func trust(t testing.TB, policy []byte, certificates map[string][]byte) *Verifier {
	t.Helper()
	v, err := New(Options{Policy: policy, Certificates: certificates, Client: images.Client(t)})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const janeDN = "notation CN=Jane,O=Acme,ST=WA,C=US"

// TestM14SignedByNotation signs as the program does.
func TestM14SignedByNotation(t *testing.T) {
	acme := newAuthority(t, "Acme Root")
	for form, mediaType := range envelopes {
		for api, support := range map[string]bool{"API": true, "NoAPI": false} {
			t.Run(form+api, func(t *testing.T) {
				r := newRepository(t, support)
				ref := r.Image(t)
				jane := acme.issue(t, "Jane", nil)
				generic, err := signer.NewGenericSigner(jane.key, jane.chain)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := upstream.Sign(context.Background(), generic, r.signatures(t), upstream.SignOptions{
					SignerSignOptions: upstream.SignerSignOptions{SignatureMediaType: mediaType, ExpiryDuration: time.Hour}, ArtifactReference: ref.String(),
				}); err != nil {
					t.Fatal(err)
				}
				if by, err := images.Verified(t, ref.String(), trust(t, policy("strict", r.Name(), "x509.subject: C=US, ST=WA, O=Acme"), map[string][]byte{"acme.crt": acme.pem()})); by != janeDN {
					t.Errorf("%q, %v", by, err)
				}
			})
		}
	}
}

func TestM14Signatures(t *testing.T) {
	acme, evil := newAuthority(t, "Acme Root"), newAuthority(t, "Acme Root") // the same name, another key
	jane := acme.issue(t, "Jane", nil)
	expired := acme.issue(t, "Jane", func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().AddDate(-2, 0, 0), time.Now().AddDate(-1, 0, 0)
	})
	early := acme.issue(t, "Jane", func(c *x509.Certificate) {
		c.NotBefore = time.Now().Add(-time.Hour)
		c.NotAfter = time.Now().AddDate(1, 0, 0)
	})
	put := func(i identity, how request) func(*testing.T, repository, name.Digest, string) {
		return func(t *testing.T, r repository, ref name.Digest, mediaType string) {
			how.mediaType = mediaType
			i.put(t, r, ref, how)
		}
	}
	later := acme.issue(t, "Jane", func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().AddDate(1, 0, 0)
	})
	lastYear := request{time: time.Now().AddDate(-1, -6, 0)}
	cases := map[string]struct {
		reason string
		sign   func(t *testing.T, r repository, ref name.Digest, mediaType string)
		policy []byte
		by     bool
		want   string
	}{
		"Signed":        {"the normal case", put(jane, request{}), policy("strict", "*", "*"), true, ""},
		"Permissive":    {"the other level that verifies", put(jane, request{}), policy("permissive", "*", "*"), true, ""},
		"Unsigned":      {"it is not signed", func(*testing.T, repository, name.Digest, string) {}, policy("strict", "*", "*"), false, "no signature"},
		"WrongKey":      {"an authority that calls itself so", put(evil.issue(t, "Jane", nil), request{}), policy("strict", "*", "*"), false, "does not contain any trusted certificate"},
		"WrongIdentity": {"the authority issues to others as well", put(acme.issue(t, "Joe", nil), request{}), policy("strict", "*", "x509.subject: C=US, ST=WA, O=Acme, CN=Jane"), false, "trusted identities"},
		"RightIdentity": {"to see that the rest is right", put(jane, request{}), policy("strict", "*", "x509.subject: C=US, ST=WA, O=Acme, CN=Jane"), true, ""},
		"OtherDigest": {"the right key, another image", func(t *testing.T, r repository, ref name.Digest, mediaType string) {
			other := r.descriptor(t, ref)
			other.Digest = "sha256:" + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			jane.put(t, r, ref, request{mediaType: mediaType, descriptor: other})
		}, policy("strict", "*", "*"), false, "descriptor mismatch"},
		"OtherSize": {"the right digest, another size", func(t *testing.T, r repository, ref name.Digest, mediaType string) {
			other := r.descriptor(t, ref)
			other.Size++
			jane.put(t, r, ref, request{mediaType: mediaType, descriptor: other})
		}, policy("strict", "*", "*"), false, "descriptor mismatch"},
		"Expired":          {"the certificate has expired, and no timestamp says when it was used", put(expired, lastYear), policy("strict", "*", "*"), false, "expired"},
		"NotYet":           {"the certificate is not valid yet", put(later, request{time: time.Now().Add(2 * time.Hour)}), policy("strict", "*", "*"), false, ""},
		"ExpiredSignature": {"the signature has expired", put(early, request{time: time.Now().Add(-30 * time.Minute), expiry: time.Now().Add(-time.Minute)}), policy("strict", "*", "*"), false, "expired"},
		"NotExpired":       {"to see that the rest is right", put(early, request{time: time.Now().Add(-30 * time.Minute), expiry: time.Now().Add(time.Hour)}), policy("strict", "*", "*"), true, ""},
		"Plugin": {"a signature that wants a program to be run", put(jane, request{attributes: []signature.Attribute{
			{Key: "io.cncf.notary.verificationPlugin", Critical: true, Value: "sh"},
		}}), policy("strict", "*", "*"), false, "plugin unsupported"},
		"Unknown": {"an unsupported part of it", put(jane, request{scheme: signature.SigningSchemeX509SigningAuthority}), policy("strict", "*", "*"), false, "no trusted certificates"},
		"Several": {"one of several suffices", func(t *testing.T, r repository, ref name.Digest, mediaType string) {
			for range 5 {
				evil.issue(t, "Jane", nil).put(t, r, ref, request{mediaType: mediaType})
			}
			jane.put(t, r, ref, request{mediaType: mediaType})
		}, policy("strict", "*", "*"), true, ""},
	}
	for title, tc := range cases {
		for form, mediaType := range envelopes {
			t.Run(title+form, func(t *testing.T) {
				r := newRepository(t, true)
				ref := r.Image(t)
				tc.sign(t, r, ref, mediaType)
				by, err := images.Verified(t, ref.String(), trust(t, tc.policy, map[string][]byte{"acme.crt": acme.pem()}))
				if tc.by {
					if by != janeDN {
						t.Errorf("%s: %q, %v", tc.reason, by, err)
					}
				} else if by != "" || fetch.ReasonOf(err) != fetch.Unverified || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: %q, %v", tc.reason, by, err)
				}
			})
		}
	}
}

func TestM14WhatIsSigned(t *testing.T) {
	acme := newAuthority(t, "Acme Root")
	jane := acme.issue(t, "Jane", nil)
	certificates := map[string][]byte{"acme.crt": acme.pem()}
	r := newRepository(t, true)
	index, child := r.Index(t)
	strict := trust(t, policy("strict", "*", "*"), certificates)

	jane.put(t, r, child, request{})
	if by, err := images.Verified(t, index.String(), strict); fetch.ReasonOf(err) != fetch.Unverified {
		t.Errorf("only the image of the index is signed: %q, %v", by, err)
	}
	jane.put(t, r, index, request{})
	if by, err := images.Verified(t, index.String(), strict); by != janeDN {
		t.Errorf("the index is signed: %q, %v", by, err)
	}
	r = newRepository(t, true)
	index, child = r.Index(t)
	jane.put(t, r, index, request{})
	if by, err := images.Verified(t, child.String(), strict); fetch.ReasonOf(err) != fetch.Unverified {
		t.Errorf("only the index is signed: %q, %v", by, err)
	}

	// A signature of another image, attached to this one.
	first, second := r.Image(t), r.Image(t)
	r.store(t, second, jws.MediaTypeEnvelope, jane.sign(t, request{mediaType: jws.MediaTypeEnvelope, descriptor: r.descriptor(t, first)}))
	if by, err := images.Verified(t, second.String(), strict); fetch.ReasonOf(err) != fetch.Unverified {
		t.Errorf("a signature of another image: %q, %v", by, err)
	}
	// And the tag moved from the signed one to the other.
	jane.put(t, r, first, request{})
	if by, err := images.Verified(t, r.Tag("v1").String(), strict); fetch.ReasonOf(err) != fetch.Unverified {
		t.Errorf("the tag points at %s: %q, %v", second, by, err)
	}
}

// TestM14SignedElsewhere: signatures of another repository are not looked at, and whom the policy trusts there is not trusted
// here.
func TestM14SignedElsewhere(t *testing.T) {
	acme, other := newAuthority(t, "Acme Root"), newAuthority(t, "Other Root")
	r := newRepository(t, true)
	img := images.Random(t)
	here := r.Push(t, img)
	repo, err := name.NewRepository(r.RegistryStr() + "/other/bundle")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := repository{&images.Repository{Repository: repo}}
	there := elsewhere.Push(t, img)
	acme.issue(t, "Jane", nil).put(t, elsewhere, there, request{})
	certificates := map[string][]byte{"ca.acme.crt": acme.pem(), "ca.other.crt": other.pem()}
	document := fmt.Appendf(nil, `{"version":"1.0","trustPolicies":[
		{"name":"here","registryScopes":[%q],"signatureVerification":{"level":"strict"},"trustStores":["ca:other"],"trustedIdentities":["*"]},
		{"name":"there","registryScopes":[%q],"signatureVerification":{"level":"strict"},"trustStores":["ca:acme"],"trustedIdentities":["*"]}]}`,
		r.Name(), elsewhere.Name())
	for title, v := range map[string]*Verifier{
		"all": trust(t, policy("strict", "*", "*"), map[string][]byte{"acme.crt": acme.pem()}), "each": trust(t, document, certificates),
	} {
		if by, err := images.Verified(t, there.String(), v); by != janeDN {
			t.Errorf("%s: where it was signed: %q, %v", title, by, err)
		}
		if by, err := images.Verified(t, here.String(), v); by != "" || fetch.ReasonOf(err) != fetch.Unverified {
			t.Errorf("%s: where it was not: %q, %v", title, by, err)
		}
	}
	acme.issue(t, "Jane", nil).put(t, r, here, request{})
	if by, err := images.Verified(t, here.String(), trust(t, document, certificates)); by != "" || fetch.ReasonOf(err) != fetch.Unverified {
		t.Errorf("by who is trusted elsewhere: %q, %v", by, err)
	}
}

// TestM14ExpiredAuthorities: a certificate is worth as much as the one of its authority.
func TestM14ExpiredAuthorities(t *testing.T) {
	key := newKey(t)
	template := &x509.Certificate{
		Subject: subject("Old Root"), NotBefore: time.Now().AddDate(-2, 0, 0), NotAfter: time.Now().AddDate(-1, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLen: 1,
	}
	old := authority{issue(t, template, template, key.Public(), key), key}
	for form, mediaType := range envelopes {
		r := newRepository(t, true)
		ref := r.Image(t)
		jane := old.issue(t, "Jane", func(c *x509.Certificate) { c.NotBefore = time.Now().AddDate(-2, 0, 0) })
		jane.put(t, r, ref, request{mediaType: mediaType, time: time.Now().AddDate(-1, -6, 0)})
		if by, err := images.Verified(t, ref.String(), trust(t, policy("strict", "*", "*"), map[string][]byte{"old.crt": old.pem()})); by != "" || fetch.ReasonOf(err) != fetch.Unverified {
			t.Errorf("%s: %q, %v", form, by, err)
		}
	}
}

// TestM14Scopes: the statement for the repository decides, and without one nothing is accepted.
func TestM14Scopes(t *testing.T) {
	acme, other := newAuthority(t, "Acme Root"), newAuthority(t, "Other Root")
	r := newRepository(t, true)
	ref := r.Image(t)
	acme.issue(t, "Jane", nil).put(t, r, ref, request{})
	statement := func(title, scope, level, store string) string {
		trusted := fmt.Sprintf(`,"trustStores":[%q],"trustedIdentities":["*"]`, store)
		if level == "skip" {
			trusted = ""
		}
		return fmt.Sprintf(`{"name":%q,"registryScopes":[%q],"signatureVerification":{"level":%q}%s}`, title, scope, level, trusted)
	}
	override := `{"name":"a","registryScopes":["*"],"signatureVerification":{"level":"strict","override":{"authenticity":"log"}},` +
		`"trustStores":["ca:acme"],"trustedIdentities":["*"]}`
	cases := map[string]struct {
		reason     string
		statements []string
		want       fetch.Reason // "" accepts it
	}{
		"This":        {"the repository", []string{statement("a", r.Name(), "strict", "ca:acme")}, ""},
		"Any":         {"all repositories", []string{statement("a", "*", "strict", "ca:acme")}, ""},
		"Other":       {"another repository", []string{statement("a", "registry.example.org/org/bundle", "strict", "ca:acme")}, fetch.Refused},
		"Closest":     {"its own statement is stronger than the one for all", []string{statement("a", "*", "strict", "ca:acme"), statement("b", r.Name(), "strict", "ca:other")}, fetch.Unverified},
		"Skip":        {"verifies nothing", []string{statement("a", "*", "skip", "")}, fetch.Refused},
		"SkipThis":    {"verifies nothing here", []string{statement("a", "*", "strict", "ca:acme"), statement("b", r.Name(), "skip", "")}, fetch.Refused},
		"SkipOther":   {"is about others", []string{statement("a", "*", "strict", "ca:acme"), statement("b", "registry.example.org/dev", "skip", "")}, ""},
		"Audit":       {"accepts any signature", []string{statement("a", "*", "audit", "ca:acme")}, fetch.Refused},
		"NotEnforced": {"likewise", []string{override}, fetch.Refused},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			document := `{"version":"1.0","trustPolicies":[` + strings.Join(tc.statements, ",") + `]}`
			by, err := images.Verified(t, ref.String(), trust(t, []byte(document), map[string][]byte{"ca.acme.crt": acme.pem(), "ca.other.pem": other.pem()}))
			if fetch.ReasonOf(err) != tc.want || (by == "") != (tc.want != "") {
				t.Errorf("%s: %q, %v", tc.reason, by, err)
			}
		})
	}
	if got := scopeOf("index.docker.io/library/nginx"); got != "docker.io/library/nginx" {
		t.Error(got)
	}
}

func TestM14TrustThatCannotBeRead(t *testing.T) {
	acme := newAuthority(t, "Acme Root")
	leaf := acme.issue(t, "Jane", nil).chain[0]
	middle := issue(t, &x509.Certificate{
		Subject: subject("Middle"), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}, acme.certificate, newKey(t).Public(), acme.key)
	good := policy("strict", "*", "*")
	goodStore := map[string][]byte{"acme.crt": acme.pem()}
	tsa := []byte(`{"version":"1.0","trustPolicies":[{"name":"a","registryScopes":["*"],"signatureVerification":{"level":"strict"},"trustStores":["ca:acme","tsa:x"],"trustedIdentities":["*"]}]}`)
	one := func(title, scope string) string {
		return fmt.Sprintf(`{"name":%q,"registryScopes":[%q],"signatureVerification":{"level":"strict"},"trustStores":["ca:acme"],"trustedIdentities":["*"]}`, title, scope)
	}
	statement := func(instead string) []byte { // of two settings of one name the later one counts
		return []byte(`{"version":"1.0","trustPolicies":[` + strings.TrimSuffix(one("a", "*"), "}") + "," + instead + `}]}`)
	}
	many := map[string][]byte{"acme.crt": []byte(strings.Repeat(string(acme.pem()), 257))}
	cases := map[string]struct {
		reason       string
		policy       []byte
		certificates map[string][]byte
		want         string
	}{
		"NoPolicy":      {"no entry", nil, goodStore, "no trust policy"},
		"EmptyPolicy":   {"an empty entry", []byte(" \n"), goodStore, "no trust policy"},
		"EmptyObject":   {"no statements", []byte("{}"), goodStore, "malformed"},
		"NoStatements":  {"no statements", []byte(`{"version":"1.0","trustPolicies":[]}`), goodStore, "zero trust policy statements"},
		"NoJSON":        {"something else", []byte("CANARY"), goodStore, "not valid JSON"},
		"TwoDocuments":  {"the second would be overlooked", append(good, good...), goodStore, "not valid JSON"},
		"OtherVersion":  {"rules that are not known here", []byte(`{"version":"2.0","trustPolicies":[{}]}`), goodStore, "version"},
		"NoIdentities":  {"no signer is trusted", []byte(`{"version":"1.0","trustPolicies":[{"name":"a","registryScopes":["*"],"signatureVerification":{"level":"strict"},"trustStores":["ca:acme"]}]}`), goodStore, "trusted identities"},
		"Null":          {"nothing", []byte("null"), goodStore, "malformed"},
		"Text":          {"no object", []byte(`"strict"`), goodStore, "not valid JSON"},
		"List":          {"no object", []byte("[]"), goodStore, "not valid JSON"},
		"NullList":      {"no statements", []byte(`{"version":"1.0","trustPolicies":null}`), goodStore, "zero trust policy statements"},
		"EmptyOne":      {"a statement that says nothing", []byte(`{"version":"1.0","trustPolicies":[{}]}`), goodStore, "malformed"},
		"NoScopes":      {"a statement about nothing", statement(`"registryScopes":[]`), goodStore, "zero registry scopes"},
		"EmptyScope":    {"a statement about nothing", statement(`"registryScopes":[""]`), goodStore, "malformed"},
		"WildScope":     {"wildcards mean nothing inside", statement(`"registryScopes":["example.org/*"]`), goodStore, "malformed"},
		"AllAndOne":     {"which of the two", statement(`"registryScopes":["*","example.org/a"]`), goodStore, "malformed"},
		"EmptyIDs":      {"no signer is trusted", statement(`"trustedIdentities":[]`), goodStore, "trusted identities"},
		"EmptyID":       {"no signer, or any", statement(`"trustedIdentities":[""]`), goodStore, "malformed"},
		"IDWithout":     {"a subject that says nothing", statement(`"trustedIdentities":["x509.subject:"]`), goodStore, "malformed"},
		"IDPart":        {"half a subject", statement(`"trustedIdentities":["x509.subject: CN=Jane"]`), goodStore, "malformed"},
		"IDOther":       {"an unknown kind", statement(`"trustedIdentities":["CN=Jane"]`), goodStore, "malformed"},
		"IDOverlap":     {"which of the two", statement(`"trustedIdentities":["*","x509.subject: C=US, ST=WA, O=Acme"]`), goodStore, "malformed"},
		"EmptyStores":   {"no authorities", statement(`"trustStores":[]`), goodStore, "malformed"},
		"StoreOther":    {"an unknown kind", statement(`"trustStores":["files:acme"]`), goodStore, "malformed"},
		"StorePath":     {"names are no paths", statement(`"trustStores":["ca:../acme"]`), goodStore, "malformed"},
		"NoName":        {"which one would be reported", statement(`"name":""`), goodStore, "malformed"},
		"TwoOfOneName":  {"which one is reported", []byte(`{"version":"1.0","trustPolicies":[` + one("a", "*") + "," + one("a", "example.org/a") + `]}`), goodStore, "malformed"},
		"TwoOfOneScope": {"which one counts", []byte(`{"version":"1.0","trustPolicies":[` + one("a", "*") + "," + one("b", "*") + `]}`), goodStore, "malformed"},
		"Integrity":     {"what cannot be waived", statement(`"signatureVerification":{"level":"strict","override":{"integrity":"log"}}`), goodStore, "malformed"},
		"SkipOverride":  {"nothing to override", statement(`"signatureVerification":{"level":"skip","override":{"authenticity":"enforce"}}`), goodStore, "malformed"},
		"NoLevel":       {"how strictly", statement(`"signatureVerification":{"level":""}`), goodStore, "malformed"},
		"UnknownLevel":  {"a typing error", policy("strikt", "*", "*"), goodStore, "level"},
		"LongPolicy":    {"too long", []byte(strings.Repeat(" ", 70<<10) + string(good)), goodStore, "limit"},
		"NoSecret":      {"no certificates", good, nil, "nothing to verify with"},
		"OnlyOthers":    {"no certificates", good, map[string][]byte{"trustpolicy.json": good}, "nothing to verify with"},
		"EmptyFirst":    {"an empty entry, and one that would do", good, map[string][]byte{"a.crt": {}, "b.crt": acme.pem()}, `"a.crt"`},
		"MalformedLast": {"one that would do, and a malformed one", good, map[string][]byte{"a.crt": acme.pem(), "b.pem": []byte("CANARY")}, `"b.pem"`},
		"Tail":          {"something after the certificate", good, map[string][]byte{"a.crt": append(acme.pem(), "CANARY"...)}, `"a.crt"`},
		"Damaged":       {"PEM around nonsense", good, map[string][]byte{"a.crt": []byte("-----BEGIN CERTIFICATE-----\nQ0FOQVJZ\n-----END CERTIFICATE-----\n")}, "cannot be read"},
		"Private":       {"a key by mistake", good, map[string][]byte{"a.crt": []byte("-----BEGIN PRIVATE KEY-----\nQ0FOQVJZ\n-----END PRIVATE KEY-----\n")}, "nothing but certificates"},
		"Leaf":          {"one that issues nothing", good, map[string][]byte{"a.crt": pemOf(leaf)}, "neither one of an authority nor self-signed"},
		"OtherStore":    {"the policy asks for another one", good, map[string][]byte{"ca.other.crt": acme.pem()}, `"ca:acme"`},
		"OnlyTSA":       {"one for timestamps is not one for signers", good, map[string][]byte{"tsa.acme.crt": acme.pem()}, `"ca:acme"`},
		"NoTSA":         {"and the other way round", tsa, goodStore, `"tsa:x"`},
		"NoRoot":        {"timestamps need one at the root", tsa, map[string][]byte{"ca.crt": acme.pem(), "tsa.crt": pemOf(middle)}, "root authority"},
		"Many":          {"too many", good, many, "limit"},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			_, err := New(Options{Policy: tc.policy, Certificates: tc.certificates})
			if fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	if _, err := New(Options{Policy: tsa, Certificates: map[string][]byte{"acme.crt": acme.pem(), "tsa.crt": acme.pem()}}); err != nil {
		t.Errorf("each type has its own: %v", err)
	}
}

// TestSignersAreShownSafely: the holder of a certificate chooses its name.
func TestSignersAreShownSafely(t *testing.T) {
	acme := newAuthority(t, "Acme Root")
	r := newRepository(t, true)
	ref := r.Image(t)
	acme.issue(t, "x", func(c *x509.Certificate) {
		c.Subject = pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{
			{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "Jane\n\u202eeenaJ\x00" + strings.Repeat("x", 400)},
		}}
	}).put(t, r, ref, request{})
	by, err := images.Verified(t, ref.String(), trust(t, policy("strict", "*", "*"), map[string][]byte{"acme.crt": acme.pem()}))
	if err != nil || len([]rune(by)) != 256 || strings.ContainsAny(by, "\n\x00\u202e") || !strings.HasPrefix(by, "notation CN=Jane") {
		t.Errorf("%q, %v", by, err)
	}
}

// TestM14NoSkippingInside: the library accepts anything at the level skip, so that it must never be asked.
func TestM14NoSkippingInside(t *testing.T) {
	acme := newAuthority(t, "Acme Root")
	v := trust(t, []byte(`{"version":"1.0","trustPolicies":[{"name":"a","registryScopes":["*"],"signatureVerification":{"level":"skip"}}]}`),
		map[string][]byte{"acme.crt": acme.pem()})
	outcome, err := v.verifier.Verify(context.Background(), ocispec.Descriptor{}, []byte("x"),
		upstream.VerifierVerifyOptions{ArtifactReference: "example.org/a@sha256:x", SignatureMediaType: cose.MediaTypeEnvelope})
	if err != nil || outcome == nil {
		t.Skipf("the library does no longer: %v", err)
	}
	r := newRepository(t, true)
	if by, err := images.Verified(t, r.Image(t).String(), v); by != "" || fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("%q, %v", by, err)
	}
}
