// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"context"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/notaryproject/tspclient-go"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/images"
)

// clock is an authority for timestamps that says any time.
type clock struct {
	identity
	now time.Time
}

func newClock(t testing.TB, root authority, now time.Time) clock {
	t.Helper()
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	if err != nil {
		t.Fatal(err)
	}
	return clock{root.issue(t, "Clock", func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().AddDate(-4, 0, 0), time.Now().AddDate(4, 0, 0)
		c.ExtKeyUsage = nil
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}}
	}), now}
}

// Timestamp implements tspclient.Timestamper.
func (c clock) Timestamp(_ context.Context, request *tspclient.Request) (*tspclient.Response, error) {
	raw, err := request.MarshalBinary()
	if err != nil {
		return nil, err
	}
	asked, err := timestamp.ParseRequest(raw)
	if err != nil {
		return nil, err
	}
	token := timestamp.Timestamp{
		HashAlgorithm: asked.HashAlgorithm, HashedMessage: asked.HashedMessage, Time: c.now, Nonce: asked.Nonce,
		Policy: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2}, AddTSACertificate: true, Accuracy: time.Second,
	}
	answer, err := token.CreateResponseWithOpts(c.chain[0], c.key, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	response := &tspclient.Response{}
	return response, response.UnmarshalBinary(answer)
}

// TestM14Timestamps: a certificate that has expired may be accepted when an authority says that it was used in time.
func TestM14Timestamps(t *testing.T) {
	acme, times, other := newAuthority(t, "Acme Root"), newAuthority(t, "Times Root"), newAuthority(t, "Other Root")
	jane := acme.issue(t, "Jane", func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().AddDate(-2, 0, 0), time.Now().AddDate(-1, 0, 0)
	})
	document := []byte(`{"version":"1.0","trustPolicies":[{"name":"a","registryScopes":["*"],"signatureVerification":{"level":"strict"},` +
		`"trustStores":["ca:acme","tsa:times"],"trustedIdentities":["*"]}]}`)
	inTime := time.Now().AddDate(-1, -6, 0)
	cases := map[string]struct {
		reason string
		clock  clock
		root   authority
		store  map[string][]byte
		by     bool
	}{
		"InTime":  {"as it should be", newClock(t, times, inTime), times, map[string][]byte{"ca.acme.crt": acme.pem(), "tsa.times.crt": times.pem()}, true},
		"TooLate": {"when the certificate had expired", newClock(t, times, time.Now().AddDate(0, -6, 0)), times, map[string][]byte{"ca.acme.crt": acme.pem(), "tsa.times.crt": times.pem()}, false},
		"Other":   {"an authority that is not trusted", newClock(t, other, inTime), other, map[string][]byte{"ca.acme.crt": acme.pem(), "tsa.times.crt": times.pem()}, false},
		"Signer":  {"an authority that is trusted for signers only", newClock(t, acme, inTime), acme, map[string][]byte{"acme.crt": acme.pem(), "tsa.times.crt": times.pem()}, false},
	}
	for title, tc := range cases {
		for form, mediaType := range envelopes {
			t.Run(title+form, func(t *testing.T) {
				r := newRepository(t, true)
				ref := r.Image(t)
				roots := x509.NewCertPool()
				roots.AddCert(tc.root.certificate)
				jane.put(t, r, ref, request{mediaType: mediaType, time: inTime, timestamper: tc.clock, roots: roots})
				by, err := images.Verified(t, ref.String(), trust(t, document, tc.store))
				if (by == janeDN) != tc.by || !tc.by && fetch.ReasonOf(err) != fetch.Unverified {
					t.Errorf("%s: %q, %v", tc.reason, by, err)
				}
			})
		}
	}
}
