// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/githubapp"
)

// hub is GitHub's API, as far as an app needs it to log in.
type hub struct {
	t      *testing.T
	key    *rsa.PrivateKey
	server *httptest.Server

	mutex  sync.Mutex
	asked  []string
	sold   int
	ends   time.Time
	now    func() time.Time
	answer http.HandlerFunc // instead of the usual one
}

func newHub(t *testing.T) *hub {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{t: t, key: key, ends: time.Now().Add(time.Hour), now: time.Now}
	h.server = httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(h.server.Close)
	return h
}

func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.asked = append(h.asked, r.Method+" "+r.URL.Path)
	if h.answer != nil {
		h.answer(w, r)
		return
	}
	if err := h.check(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); err != nil {
		h.t.Log(err)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /api/v3/orgs/team/installation", "GET /api/v3/users/someone/installation":
		_, _ = io.WriteString(w, `{"id": 42}`)
	case "POST /api/v3/app/installations/42/access_tokens":
		wish, err := io.ReadAll(r.Body)
		if err != nil || string(wish) != `{"permissions":{"contents":"read"}}` {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		h.sold++
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"token": "CANARY-%d", "expires_at": %q}`, h.sold, h.ends.UTC().Format(time.RFC3339))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// check verifies a JSON Web Token as GitHub does.
func (h *hub) check(statement string) error {
	parts := strings.Split(statement, ".")
	if len(parts) != 3 {
		return fmt.Errorf("%q is no statement", statement)
	}
	var raw [3][]byte
	for i, part := range parts {
		var err error
		if raw[i], err = base64.RawURLEncoding.DecodeString(part); err != nil {
			return err
		}
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(&h.key.PublicKey, crypto.SHA256, sum[:], raw[2]); err != nil {
		return err
	}
	var head, claims map[string]any
	if err := errors.Join(json.Unmarshal(raw[0], &head), json.Unmarshal(raw[1], &claims)); err != nil {
		return err
	}
	begins, ends := int64(claims["iat"].(float64)), int64(claims["exp"].(float64))
	if head["alg"] != "RS256" || claims["iss"] != "7" || ends-begins > 600 || begins > h.now().Unix() || ends < h.now().Unix() {
		return fmt.Errorf("%v %v", head, claims)
	}
	return nil
}

func (h *hub) pem(pkcs8 bool) []byte {
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(h.key)}
	if pkcs8 {
		raw, err := x509.MarshalPKCS8PrivateKey(h.key)
		if err != nil {
			h.t.Fatal(err)
		}
		block = &pem.Block{Type: "PRIVATE KEY", Bytes: raw}
	}
	return pem.EncodeToMemory(block)
}

func (h *hub) app(change func(*githubapp.Options)) *githubapp.Options {
	a := &githubapp.Options{ID: "7", InstallationID: "42", PrivateKey: h.pem(false), BaseURL: h.server.URL + "/api/v3"}
	if change != nil {
		change(a)
	}
	return a
}

func (h *hub) requests() []string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	asked := h.asked
	h.asked = nil
	return asked
}

// basic is the header with a token of the installation.
func basic(token string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+token))
}

func TestGitHubApps(t *testing.T) {
	r := newRepository(t)
	r.files("main", "a", "1")
	const buying = "POST /api/v3/app/installations/42/access_tokens"
	cases := map[string]struct {
		reason string
		change func(*githubapp.Options)
		want   []string
	}{
		"Installation": {"its ID is known", nil, []string{buying}},
		"PKCS8":        {"the other form of keys", nil, []string{buying}},
		"Organization": {"its owner is", func(a *githubapp.Options) { a.InstallationID, a.Owner = "", "team" }, []string{"GET /api/v3/orgs/team/installation", buying}},
		"User": {"its owner is no organization", func(a *githubapp.Options) { a.InstallationID, a.Owner = "", "someone" },
			[]string{"GET /api/v3/orgs/someone/installation", "GET /api/v3/users/someone/installation", buying}},
		"Slash": {"as people write it", func(a *githubapp.Options) { a.BaseURL += "/" }, []string{buying}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			p, server := guarded(t, r, basic("CANARY-1"))
			a := h.app(tc.change)
			if name == "PKCS8" {
				a.PrivateKey = h.pem(true)
			}
			_, files, err := pull(t, Options{URL: server.URL + "/org/repo.git", App: a})
			if err != nil || files["a"] != "1" {
				t.Fatalf("%s: %v %v", tc.reason, files, err)
			}
			if diff := cmp.Diff(tc.want, h.requests()); diff != "" {
				t.Errorf("%s: one token is enough: %s", tc.reason, diff)
			}
			if heard := p.heard(); len(heard) != 3 {
				t.Errorf("got %v", heard)
			}
		})
	}
}

func TestGitHubTokensAreKept(t *testing.T) {
	r := newRepository(t)
	r.files("main", "a", "1")
	h, tokens, clock := newHub(t), githubapp.NewTokens(), time.Now()
	tokens.Now = func() time.Time { return clock }
	h.now = tokens.Now
	p := &private{repository: r}
	wanted := "CANARY-1"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != basic(wanted) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		p.forward(w, q)
	}))
	t.Cleanup(server.Close)
	resolve := func(change func(*githubapp.Options)) error {
		_, err := fetcher(t, Options{URL: server.URL + "/org/repo.git", App: h.app(func(a *githubapp.Options) {
			a.Tokens = tokens
			if change != nil {
				change(a)
			}
		})}).Resolve(context.Background())
		return err
	}
	steps := []struct {
		reason string
		do     func()
		err    fetch.Reason
		sold   int
	}{
		{"the first one buys", func() {}, "", 1},
		{"others use that", func() {}, "", 1},
		{"until a minute before its end", func() { clock = h.ends.Add(-61 * time.Second) }, "", 1},
		{"then it is renewed", func() { clock, wanted = h.ends.Add(-59*time.Second), "CANARY-2"; h.ends = h.ends.Add(time.Hour) }, "", 2},
		{"a revoked one is refused once", func() { wanted = "CANARY-3" }, fetch.Unauthorized, 2},
		{"and bought again", func() {}, "", 3},
	}
	for _, step := range steps {
		step.do()
		if err := resolve(nil); fetch.ReasonOf(err) != step.err || err != nil && strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", step.reason, err)
		}
		if h.sold != step.sold {
			t.Errorf("%s: %d were bought", step.reason, h.sold)
		}
	}
	wanted = "CANARY-4"
	if err := resolve(func(a *githubapp.Options) { a.InstallationID, a.Owner = "", "team" }); err != nil || h.sold != 4 {
		t.Errorf("another installation has a token of its own: %v, %d", err, h.sold)
	}
	if err := resolve(func(a *githubapp.Options) { a.PrivateKey = newHub(t).pem(false) }); fetch.ReasonOf(err) != fetch.Unauthorized {
		t.Errorf("who does not have the key gets no token: %v", err)
	}
}

func TestGitHubTokensAreBoughtOnce(t *testing.T) {
	h, tokens := newHub(t), githubapp.NewTokens()
	a, err := githubapp.New(*h.app(func(a *githubapp.Options) { a.Tokens = tokens }), client())
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if login, err := a.Login(t.Context()); err != nil || login.Password != "CANARY-1" {
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if h.sold != 1 {
		t.Errorf("%d were bought", h.sold)
	}
}

func TestM18GitHubAnswers(t *testing.T) {
	canary := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { t.Errorf("a request came: %v", q.Header) }))
	t.Cleanup(canary.Close)
	say := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		}
	}
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   fetch.Reason
	}{
		"Denied":   {"a wrong key", say(401, "CANARY"), fetch.Unauthorized},
		"Missing":  {"no such installation", say(404, "CANARY"), fetch.NotFound},
		"Right":    {"the app may not read", say(422, "CANARY"), fetch.Unauthorized},
		"Limited":  {"too many requests", say(429, ""), fetch.RateLimited},
		"Broken":   {"a failure", say(500, "CANARY"), fetch.Unreachable},
		"Page":     {"not the API", say(200, "<html>CANARY"), fetch.InvalidContent},
		"Huge":     {"an endless answer", say(200, `{"token": "`+strings.Repeat("x", 1<<20)+`"}`), fetch.InvalidContent},
		"NoToken":  {"nothing in it", say(201, `{}`), fetch.InvalidContent},
		"Control":  {"no token", say(201, `{"token": "CANARY\nX"}`), fetch.InvalidContent},
		"Redirect": {"another server gets nothing", http.RedirectHandler(canary.URL, http.StatusTemporaryRedirect).ServeHTTP, fetch.Unreachable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.answer = tc.answer
			_, err := fetcher(t, Options{URL: canary.URL, App: h.app(nil)}).Resolve(t.Context())
			if fetch.ReasonOf(err) != tc.want || strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), "GitHub App 7") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestM15GitHubAppRefusals(t *testing.T) {
	h := newHub(t)
	cases := map[string]struct {
		reason string
		change func(*githubapp.Options)
	}{
		"NoID":       {"who asks", func(a *githubapp.Options) { a.ID = "" }},
		"BadID":      {"leaves the statement", func(a *githubapp.Options) { a.ID = "7\"," }},
		"Neither":    {"no installation", func(a *githubapp.Options) { a.InstallationID = "" }},
		"Both":       {"ambiguous", func(a *githubapp.Options) { a.Owner = "team" }},
		"Path":       {"leaves the path", func(a *githubapp.Options) { a.InstallationID = "42/../../user" }},
		"OwnerPath":  {"leaves the path", func(a *githubapp.Options) { a.InstallationID, a.Owner = "", "../x" }},
		"NoKey":      {"nothing signs", func(a *githubapp.Options) { a.PrivateKey = []byte("CANARY") }},
		"SSHKey":     {"another kind of key", func(a *githubapp.Options) { a.PrivateKey = newKey(t, "ed25519").pem(t, "") }},
		"WeakKey":    {"1024 bits", func(a *githubapp.Options) { a.PrivateKey = weakAppKey(t) }},
		"FileURL":    {"reads this machine", func(a *githubapp.Options) { a.BaseURL = "file:///etc" }},
		"Credential": {"would be shown", func(a *githubapp.Options) { a.BaseURL = "https://u:CANARY@example.org" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{URL: "https://example.org/r", App: h.app(tc.change), Client: client()})
			if fetch.ReasonOf(err) != fetch.Refused || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	if _, err := New(Options{URL: "https://example.org/r", App: h.app(nil), Login: fetch.Login{Token: "x"}, Client: client()}); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("two logins: %v", err)
	}
}

func weakAppKey(t *testing.T) []byte {
	t.Helper()
	key, ok := newKey(t, "rsa1024").private.(*rsa.PrivateKey)
	if !ok {
		t.Fatal("no RSA key")
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}
