// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/sigstore/cosign/v3/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v3/pkg/oci/static"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/images"
)

const (
	janeSubject, janeIssuer = "jane@acme.org", "https://login.acme.org"
	workflow                = "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"
	workflows               = "https://token.actions.githubusercontent.com"
)

var (
	jane   = holder{subject: janeSubject, issuer: janeIssuer}
	action = holder{subject: workflow, issuer: workflows}

	isJane   = Identity{IssuerRegExp: "^https://login\\.acme\\.org$", SubjectRegExp: "^jane@acme\\.org$"}
	isAction = Identity{IssuerRegExp: "^https://token\\.actions\\.githubusercontent\\.com$", SubjectRegExp: "^https://github\\.com/acme/app/.*$"}
)

// keylessSignature is what cosign has to store for an identity.
type keylessSignature struct {
	holder holder
	at     time.Time // when the log took it; zero for now
	// change alters the bundle before it is stored.
	change func(t *testing.T, s *standIn, made *protobundle.Bundle)
}

// refer stores it in the newer form.
func (k keylessSignature) refer(t *testing.T, s *standIn, ref name.Digest) {
	t.Helper()
	made := s.keyless(t, &sign.DSSEData{Data: statement(t, ref.DigestStr(), signPredicate), PayloadType: "application/vnd.in-toto+json"}, k.holder, k.when())
	if k.change != nil {
		k.change(t, s, made)
	}
	refer(t, ref, marshal(t, made), signPredicate)
}

// tag stores it in the older form.
func (k keylessSignature) tag(t *testing.T, s *standIn, ref name.Digest) {
	t.Helper()
	pair, content := ecdsaKey(t), claim(t, ref)
	certificate := s.issue(t, pair.GetPublicKey(), k.holder)
	made := pair.bundle(t, &sign.PlainData{Data: content}, sign.BundleOptions{CertificateProvider: certificateOf{certificate}})
	s.log(t, made, certificatePEM(t, certificate), k.when())
	if k.change != nil {
		k.change(t, s, made)
	}
	options := []static.Option{static.WithCertChain(certificatePEM(t, certificate), certificatePEM(t, s.issuer))}
	for _, entry := range made.VerificationMaterial.TlogEntries {
		options = append(options, static.WithBundle(&bundle.RekorBundle{
			SignedEntryTimestamp: entry.InclusionPromise.SignedEntryTimestamp,
			Payload: bundle.RekorPayload{
				Body: entry.CanonicalizedBody, IntegratedTime: entry.IntegratedTime, LogIndex: entry.LogIndex, LogID: hexOf(entry.LogId.KeyId),
			},
		}))
	}
	for _, timestamp := range made.VerificationMaterial.GetTimestampVerificationData().GetRfc3161Timestamps() {
		options = append(options, static.WithRFC3161Timestamp(&bundle.RFC3161Timestamp{SignedRFC3161Timestamp: timestamp.SignedTimestamp}))
	}
	attach(t, ref, content, made.GetMessageSignature().Signature, options...)
}

func (k keylessSignature) when() time.Time {
	if k.at.IsZero() {
		return time.Now()
	}
	return k.at
}

func TestM14Identities(t *testing.T) {
	s := newStandIn(t)
	old := jane
	old.from = time.Now().Add(-30 * time.Minute)
	unlogged, elsewhere, foreign := jane, jane, jane
	second, disguised, both := holder{subject: "joe@acme.org", issuer: janeIssuer}, jane, jane
	second.also, disguised.also, both.also = []string{janeSubject}, []string{workflow}, []string{"joe@acme.org"}
	unlogged.unlogged, elsewhere.logKey, foreign.foreign = true, newECDSA(t), true
	onlyStamped := func(t *testing.T, s *standIn, made *protobundle.Bundle) {
		s.stamp(t, made)
		for _, entry := range made.VerificationMaterial.TlogEntries {
			entry.InclusionPromise = nil
		}
	}
	cases := map[string]struct {
		reason     string
		signature  keylessSignature
		identities []Identity
		by         string // "" for no signer
		forms      string // "" for both
	}{
		"Person":        {"an address", keylessSignature{holder: jane}, []Identity{isJane}, "cosign jane@acme.org (https://login.acme.org)", ""},
		"Workflow":      {"a URI", keylessSignature{holder: action}, []Identity{isAction}, "cosign " + workflow + " (" + workflows + ")", ""},
		"Second":        {"one of several", keylessSignature{holder: jane}, []Identity{isAction, isJane}, "cosign jane@acme.org (https://login.acme.org)", ""},
		"M35Exact":      {"without a regular expression", keylessSignature{holder: jane}, []Identity{{Issuer: janeIssuer, Subject: janeSubject}}, "cosign jane@acme.org (https://login.acme.org)", ""},
		"M35Dots":       {"an exact value is no expression", keylessSignature{holder: jane}, []Identity{{Issuer: "https://login.acme.or.", Subject: janeSubject}}, "", ""},
		"M35Mixed":      {"one exact, one not", keylessSignature{holder: jane}, []Identity{{Issuer: janeIssuer, SubjectRegExp: "^[a-z]+@acme[.]org$"}}, "cosign jane@acme.org (https://login.acme.org)", ""},
		"M35Longer":     {"a foreign domain", keylessSignature{holder: holder{subject: "jane@acme.org.evil.example", issuer: janeIssuer}}, []Identity{isJane, {Issuer: janeIssuer, Subject: janeSubject}}, "", ""},
		"M35Path":       {"the name in a path of a foreign domain", keylessSignature{holder: holder{subject: "https://evil.example/https://github.com/acme/app/x", issuer: workflows}}, []Identity{isAction}, "", ""},
		"M32LongName":   {"no identity has a name of 14 kB", keylessSignature{holder: holder{subject: "https://github.com/acme/app/" + strings.Repeat("a", 14_000), issuer: workflows}}, []Identity{isAction}, "", ""},
		"OtherSigner":   {"neither matches", keylessSignature{holder: jane}, []Identity{isAction}, "", ""},
		"OtherSubject":  {"only the issuer matches", keylessSignature{holder: jane}, []Identity{{Issuer: janeIssuer, SubjectRegExp: "^joe@acme\\.org$"}}, "", ""},
		"OtherIssuer":   {"only the subject matches", keylessSignature{holder: jane}, []Identity{{IssuerRegExp: "^https://evil\\.org$", Subject: janeSubject}}, "", ""},
		"Crossed":       {"the subject of one with the issuer of another", keylessSignature{holder: holder{subject: janeSubject, issuer: workflows}}, []Identity{isJane, isAction}, "", ""},
		"Several":       {"two subjects, of which the first one counts", keylessSignature{holder: both}, []Identity{isJane}, "cosign jane@acme.org (https://login.acme.org)", ""},
		"SecondSubject": {"two subjects, of which the second one would do", keylessSignature{holder: second}, []Identity{isJane}, "", ""},
		"MixedSubjects": {"an address beside a URI, which is what counts", keylessSignature{holder: disguised}, []Identity{isJane}, "", ""},
		"NoCertLog":     {"the certificate is in no log", keylessSignature{holder: unlogged}, []Identity{isJane}, "", ""},
		"OtherCertLog":  {"the certificate is in a log that is not trusted", keylessSignature{holder: elsewhere}, []Identity{isJane}, "", ""},
		"OtherIssuerCA": {"anybody can make a certificate", keylessSignature{holder: foreign}, []Identity{isJane}, "", ""},
		"Expired":       {"the certificate had expired when the log took the signature", keylessSignature{holder: old}, []Identity{isJane}, "", ""},
		"Early":         {"the certificate was not valid yet", keylessSignature{holder: jane, at: time.Now().Add(-20 * time.Minute)}, []Identity{isJane}, "", ""},
		"LongAgo":       {"the certificate has expired meanwhile", keylessSignature{holder: old, at: time.Now().Add(-25 * time.Minute)}, []Identity{isJane}, "cosign jane@acme.org (https://login.acme.org)", ""},
		"NoEntry": {"it is in no log", keylessSignature{holder: jane, change: func(_ *testing.T, _ *standIn, made *protobundle.Bundle) {
			made.VerificationMaterial.TlogEntries = nil
		}}, []Identity{isJane}, "", ""},
		"OnlyTimestamp": {"it is in no log, but has a timestamp", keylessSignature{holder: jane, change: func(t *testing.T, s *standIn, made *protobundle.Bundle) {
			made.VerificationMaterial.TlogEntries = nil
			s.stamp(t, made)
		}}, []Identity{isJane}, "", ""},
		"OtherEntry": {"the entry of another signature", keylessSignature{holder: jane, change: func(t *testing.T, s *standIn, made *protobundle.Bundle) {
			other := s.keyless(t, &sign.PlainData{Data: []byte("x")}, jane, time.Now())
			made.VerificationMaterial.TlogEntries = other.VerificationMaterial.TlogEntries
		}}, []Identity{isJane}, "", ""},
		"OtherLog": {"in a log that is not trusted", keylessSignature{holder: jane, change: func(t *testing.T, _ *standIn, made *protobundle.Bundle) {
			body := made.VerificationMaterial.TlogEntries[0].CanonicalizedBody
			made.VerificationMaterial.TlogEntries[0] = newStandIn(t).logEntry(t, body, time.Now())
		}}, []Identity{isJane}, "", ""},
		"ForgedTime": {"the log promised another time", keylessSignature{holder: jane, change: func(_ *testing.T, _ *standIn, made *protobundle.Bundle) {
			made.VerificationMaterial.TlogEntries[0].IntegratedTime--
		}}, []Identity{isJane}, "", ""},
		"Timestamp": {"the log does not tell the time, an authority does", keylessSignature{holder: jane, change: onlyStamped}, []Identity{isJane}, "cosign jane@acme.org (https://login.acme.org)", "Bundle"},
		"OtherTimestamp": {"an authority that is not trusted tells the time", keylessSignature{holder: jane, change: func(t *testing.T, _ *standIn, made *protobundle.Bundle) {
			onlyStamped(t, newStandIn(t), made)
		}}, []Identity{isJane}, "", "Bundle"},
		"NoTime": {"no source of the time", keylessSignature{holder: jane, change: func(_ *testing.T, _ *standIn, made *protobundle.Bundle) {
			made.VerificationMaterial.TlogEntries[0].InclusionPromise = nil
		}}, []Identity{isJane}, "", "Bundle"},
		"Key": {"a key signed it", keylessSignature{holder: jane, change: func(t *testing.T, _ *standIn, made *protobundle.Bundle) {
			made.VerificationMaterial.Content = ecdsaKey(t).bundle(t, &sign.PlainData{Data: []byte("x")}, sign.BundleOptions{}).VerificationMaterial.Content
		}}, []Identity{isJane}, "", "Bundle"},
	}
	for title, tc := range cases {
		for form, store := range map[string]func(keylessSignature, *testing.T, *standIn, name.Digest){
			"Tag": keylessSignature.tag, "Bundle": keylessSignature.refer,
		} {
			if tc.forms != "" && tc.forms != form {
				continue
			}
			t.Run(title+form, func(t *testing.T) {
				r := images.New(t, true)
				ref := r.Image(t)
				store(tc.signature, t, s, ref)
				by, err := images.Verified(t, ref.String(), verifier(t, Options{Identities: tc.identities, TrustedRoot: s.trust(t)}))
				if by != tc.by || (err == nil) != (tc.by != "") || err != nil && fetch.ReasonOf(err) != fetch.Unverified {
					t.Errorf("%s: %q, %v", tc.reason, by, err)
				}
			})
		}
	}
}

func TestM14IdentitiesOfAnotherSigstore(t *testing.T) {
	r := images.New(t, true)
	ref := r.Image(t)
	keylessSignature{holder: jane}.refer(t, newStandIn(t), ref)
	if by, err := images.Verified(t, ref.String(), verifier(t, Options{Identities: []Identity{isJane}, TrustedRoot: newStandIn(t).trust(t)})); fetch.ReasonOf(err) != fetch.Unverified {
		t.Errorf("%q, %v", by, err)
	}
}

// TestM14TrustThatEnded: what the trusted root says to be over is not trusted for what was signed later.
func TestM14TrustThatEnded(t *testing.T) {
	s := newStandIn(t)
	for form, store := range map[string]func(keylessSignature, *testing.T, *standIn, name.Digest){
		"Tag": keylessSignature.tag, "Bundle": keylessSignature.refer,
	} {
		r := images.New(t, true)
		ref := r.Image(t)
		store(keylessSignature{holder: jane}, t, s, ref)
		for part, want := range map[string]bool{"": true, "authorities": false, "certificate logs": false, "logs": false} {
			by, err := images.Verified(t, ref.String(), verifier(t, Options{Identities: []Identity{isJane}, TrustedRoot: s.trust(t, part+" over")}))
			if (by != "") != want || !want && fetch.ReasonOf(err) != fetch.Unverified {
				t.Errorf("%s, %s: %q, %v", form, part, by, err)
			}
		}
	}
}

func TestM14IdentityTrust(t *testing.T) {
	s := newStandIn(t)
	whole := s.trust(t)
	cases := map[string]struct {
		reason string
		o      Options
		want   string
	}{
		"NoRoot":        {"nothing is downloaded", Options{Identities: []Identity{isJane}}, "need a trusted root"},
		"EmptyRoot":     {"an empty entry", Options{Identities: []Identity{isJane}, TrustedRoot: []byte{}}, "not one of Sigstore"},
		"NoJSON":        {"something else", Options{Identities: []Identity{isJane}, TrustedRoot: []byte("CANARY-secret")}, "not one of Sigstore"},
		"OtherJSON":     {"something else", Options{Identities: []Identity{isJane}, TrustedRoot: []byte(`{"a":"CANARY-secret"}`)}, "not one of Sigstore"},
		"NoType":        {"an empty object", Options{Identities: []Identity{isJane}, TrustedRoot: []byte(`{}`)}, "not one of Sigstore"},
		"LongRoot":      {"too long", Options{Identities: []Identity{isJane}, TrustedRoot: append(whole, strings.Repeat(" ", 2<<20)...)}, "not one of Sigstore"},
		"NoAuthorities": {"no identity could be verified", Options{Identities: []Identity{isJane}, TrustedRoot: s.trust(t, "authorities")}, "no certificate authority"},
		"NoCertLogs":    {"certificates would go unchecked", Options{Identities: []Identity{isJane}, TrustedRoot: s.trust(t, "certificate logs")}, "no certificate transparency log"},
		"NoLogs":        {"signatures would go unchecked", Options{Identities: []Identity{isJane}, TrustedRoot: s.trust(t, "logs")}, "no transparency log"},
		"NoIssuer":      {"anybody may claim to be jane", Options{Identities: []Identity{{Subject: "jane"}}, TrustedRoot: whole}, "identity 1: give either issuer or issuerRegExp"},
		"NoSubject":     {"everybody of the issuer", Options{Identities: []Identity{isJane, {Issuer: "acme"}}, TrustedRoot: whole}, "identity 2: give either subject or subjectRegExp"},
		"Everybody":     {"as good as none", Options{Identities: []Identity{{IssuerRegExp: "^.*$", Subject: "jane"}}, TrustedRoot: whole}, "matches everybody"},
		"M35Both":       {"which of the two?", Options{Identities: []Identity{{Issuer: "a", IssuerRegExp: "^a$", Subject: "jane"}}, TrustedRoot: whole}, "give either issuer or issuerRegExp"},
		"M35Anchors":    {"acme-evil", Options{Identities: []Identity{{IssuerRegExp: "acme", Subject: "jane"}}, TrustedRoot: whole}, "is not anchored"},
		"M35Begin":      {"jane@acme.org.evil.example", Options{Identities: []Identity{{Issuer: "a", SubjectRegExp: "^jane@acme[.]org"}}, TrustedRoot: whole}, "is not anchored"},
		"M35End":        {"https://evil.example/https://github.com/acme", Options{Identities: []Identity{{Issuer: "a", SubjectRegExp: "https://github[.]com/acme$"}}, TrustedRoot: whole}, "is not anchored"},
		"M35Ways":       {"each way needs both", Options{Identities: []Identity{{Issuer: "a", SubjectRegExp: "^jane|joe$"}}, TrustedRoot: whole}, "is not anchored"},
		"M35Lines":      {"a name can have several lines", Options{Identities: []Identity{{Issuer: "a", SubjectRegExp: "(?m)^jane$"}}, TrustedRoot: whole}, "is not anchored"},
		"M35Escaped":    {"a dollar sign is no end", Options{Identities: []Identity{{Issuer: "a", SubjectRegExp: `^jane\$`}}, TrustedRoot: whole}, "is not anchored"},
		"M35Optional":   {"an end that may be left out", Options{Identities: []Identity{{Issuer: "a", SubjectRegExp: `^jane($)?`}}, TrustedRoot: whole}, "is not anchored"},
		"Malformed":     {"no regular expression", Options{Identities: []Identity{{IssuerRegExp: "(", Subject: "jane"}}, TrustedRoot: whole}, "no regular expression"},
		"LongPattern":   {"too long", Options{Identities: []Identity{{IssuerRegExp: strings.Repeat("a", 2000), Subject: "jane"}}, TrustedRoot: whole}, "2000 bytes"},
		"LongValue":     {"too long", Options{Identities: []Identity{{Issuer: strings.Repeat("a", 2000), Subject: "jane"}}, TrustedRoot: whole}, "2000 bytes"},
		"M32Size":       {"a million instructions", Options{Identities: []Identity{{Issuer: "a", SubjectRegExp: "^(?:" + strings.Repeat("a", 990) + "){1000}$"}}, TrustedRoot: whole}, "instructions"},
		"M32Budget":     {"each may be compiled, all of them not", Options{Identities: slices.Repeat([]Identity{{Issuer: "a", SubjectRegExp: "^" + strings.Repeat("a", 1000) + "{2}$"}}, 40), TrustedRoot: whole}, "together"},
		"M36Ignore":     {"the log tells when a certificate was used", Options{Identities: []Identity{isJane}, TrustedRoot: whole, IgnoreLog: true}, "cannot be ignored"},
		"M36NoLog":      {"nothing could be in a log", Options{Keys: keys(t, ecdsaKey(t)), TrustedRoot: s.trust(t, "logs")}, "no transparency log"},
		"Bomb":          {"grows when it is compiled", Options{Identities: []Identity{{IssuerRegExp: "((a{100}){100}){100}", Subject: "jane"}}, TrustedRoot: whole}, "no regular expression"},
		"Many":          {"too many", Options{Identities: make([]Identity, 65), TrustedRoot: whole}, "65 identities"},
		"KeysToo":       {"which of the two?", Options{Identities: []Identity{isJane}, TrustedRoot: whole, Keys: keys(t, ecdsaKey(t))}, "one of the two"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := New(tc.o)
			if fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	for _, whole := range []string{"^a|^b", "^a$", "^(a|b)$", "^a$|^b$", `\Aa\z`, "^(^a$)$", "^[^b]+$"} {
		if anchored(whole) != (whole != "^a|^b") {
			t.Errorf("%s: anchored is %t", whole, anchored(whole))
		}
	}
	if _, err := New(Options{Identities: []Identity{isJane}, TrustedRoot: s.trust(t, "timestamps")}); err != nil {
		t.Errorf("logs tell the time as well: %v", err)
	}
}
