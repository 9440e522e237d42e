// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/tests/images"
)

func pemOf(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// revocations is a server that says which certificates were revoked.
type revocations struct {
	*httptest.Server
	requests atomic.Int32
}

func serveRevocations(t *testing.T, handler func(w http.ResponseWriter, r *http.Request)) *revocations {
	t.Helper()
	s := &revocations{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// list is the list of an authority of what it revoked.
func (a authority) list(t *testing.T, revoked ...*big.Int) []byte {
	t.Helper()
	var entries []x509.RevocationListEntry
	for _, number := range revoked {
		entries = append(entries, x509.RevocationListEntry{SerialNumber: number, RevocationTime: time.Now().Add(-time.Minute)})
	}
	raw, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour), RevokedCertificateEntries: entries,
	}, a.certificate, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// answer is what an authority says about one certificate.
func (a authority) answer(t *testing.T, status int, number *big.Int) []byte {
	t.Helper()
	raw, err := ocsp.CreateResponse(a.certificate, a.certificate, ocsp.Response{
		Status: status, SerialNumber: number, ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour),
		RevokedAt: time.Now().Add(-time.Minute),
	}, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestM14Revoked(t *testing.T) {
	acme, evil := newAuthority(t, "Acme Root"), newAuthority(t, "Evil Root")
	certificates := map[string][]byte{"acme.crt": acme.pem()}
	lists := func(c *x509.Certificate, url string) { c.CRLDistributionPoints = []string{url + "/list"} }
	asks := func(c *x509.Certificate, url string) { c.OCSPServer = []string{url + "/ask"} }
	both := func(c *x509.Certificate, url string) { lists(c, url); asks(c, url) }
	serve := func(raw func(t *testing.T, number *big.Int) []byte) func(*testing.T, *big.Int, http.ResponseWriter, *http.Request) {
		return func(t *testing.T, number *big.Int, w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(raw(t, number))
		}
	}
	cases := map[string]struct {
		reason string
		name   func(c *x509.Certificate, url string)
		serve  func(t *testing.T, number *big.Int, w http.ResponseWriter, r *http.Request)
		level  string
		want   string // of the error; "" accepts it
	}{
		"ListRevoked": {"on the list", lists, serve(func(t *testing.T, n *big.Int) []byte { return acme.list(t, n) }), "strict", "is revoked"},
		"ListOther":   {"another one is on the list", lists, serve(func(t *testing.T, _ *big.Int) []byte { return acme.list(t, big.NewInt(1<<40)) }), "strict", ""},
		"ListForged":  {"the list of another authority", lists, serve(func(t *testing.T, _ *big.Int) []byte { return evil.list(t) }), "strict", "unknown"},
		"ListGone": {"no list", lists, func(_ *testing.T, _ *big.Int, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
		}, "strict", "unknown"},
		"ListHuge": {"100 MiB", lists, func(_ *testing.T, _ *big.Int, w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, io.LimitReader(rand.Reader, 100<<20))
		}, "strict", "unknown"},
		"AnswerRevoked": {"revoked", asks, serve(func(t *testing.T, n *big.Int) []byte { return acme.answer(t, ocsp.Revoked, n) }), "strict", "is revoked"},
		"AnswerGood":    {"not revoked", asks, serve(func(t *testing.T, n *big.Int) []byte { return acme.answer(t, ocsp.Good, n) }), "strict", ""},
		"AnswerForged":  {"another authority says so", asks, serve(func(t *testing.T, n *big.Int) []byte { return evil.answer(t, ocsp.Good, n) }), "strict", "unknown"},
		"AnswerOther":   {"about another one", asks, serve(func(t *testing.T, _ *big.Int) []byte { return acme.answer(t, ocsp.Good, big.NewInt(1<<40)) }), "strict", "unknown"},
		"Fallback": {"no answer, but a list", both, func(t *testing.T, n *big.Int, w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/ask") {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			_, _ = w.Write(acme.list(t, n))
		}, "strict", "is revoked"},
		"Permissive": {"the policy wants it logged only", lists, serve(func(t *testing.T, n *big.Int) []byte { return acme.list(t, n) }), "permissive", ""},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			var number *big.Int
			server := serveRevocations(t, func(w http.ResponseWriter, r *http.Request) { tc.serve(t, number, w, r) })
			jane := acme.issue(t, "Jane", func(c *x509.Certificate) { tc.name(c, server.URL) })
			number = jane.chain[0].SerialNumber
			r := newRepository(t, true)
			ref := r.Image(t)
			jane.put(t, r, ref, request{})
			by, err := images.Verified(t, ref.String(), trust(t, policy(tc.level, "*", "*"), certificates))
			if tc.want == "" && by != janeDN || tc.want != "" && (by != "" || fetch.ReasonOf(err) != fetch.Unverified || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: %q, %v", tc.reason, by, err)
			}
			if server.requests.Load() == 0 {
				t.Error("no server was asked")
			}
		})
	}
}

// TestM14RevocationsAreGuarded: a certificate names the server, so that the address policy has to hold.
func TestM14RevocationsAreGuarded(t *testing.T) {
	acme := newAuthority(t, "Acme Root")
	r := newRepository(t, true)
	clients := map[string]*http.Client{
		"None":    nil,
		"Address": guard.AddressPolicy{InsecureHosts: []string{"127.0.0.1"}}.HTTPClient(fetch.DefaultLimits()),
		"Plain":   guard.AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}.HTTPClient(fetch.DefaultLimits()),
		"Default": {}, // would be the default transport, which nothing guards
	}
	for title, guarded := range clients {
		t.Run(title, func(t *testing.T) {
			canary := serveRevocations(t, func(http.ResponseWriter, *http.Request) {})
			for form, change := range map[string]func(*x509.Certificate){
				"list": func(c *x509.Certificate) { c.CRLDistributionPoints = []string{canary.URL} },
				"ask":  func(c *x509.Certificate) { c.OCSPServer = []string{canary.URL} },
			} {
				ref := r.Image(t)
				acme.issue(t, "Jane", change).put(t, r, ref, request{})
				v, err := New(Options{Policy: policy("strict", "*", "*"), Certificates: map[string][]byte{"acme.crt": acme.pem()}, Client: guarded})
				if err != nil {
					t.Fatal(err)
				}
				if by, err := images.Verified(t, ref.String(), v); fetch.ReasonOf(err) != fetch.Unverified || !strings.Contains(err.Error(), "unknown") {
					t.Errorf("%s: %q, %v", form, by, err)
				}
			}
			if n := canary.requests.Load(); n > 0 {
				t.Errorf("%d requests reached the canary", n)
			}
		})
	}
}
