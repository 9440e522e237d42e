// SPDX-License-Identifier: Apache-2.0

package image

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
)

// listener records every secret that it is sent, wherever in a request.
type listener struct {
	host  string
	mutex sync.Mutex
	heard []string
}

// eavesdrop serves on an address of this machine, and answers as handler does.
func eavesdrop(t *testing.T, address string, handler http.HandlerFunc) *listener {
	t.Helper()
	socket, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Skipf("this machine has no second loopback address: %v", err)
	}
	l := &listener{host: socket.Addr().String()}
	server := &httptest.Server{Listener: socket, Config: &http.Server{ //nolint:gosec // a test server
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, secret, _ := r.BasicAuth()
			l.mutex.Lock()
			if all := secret + r.Header.Get("Authorization") + r.URL.RawQuery + string(body); strings.Contains(all, "CANARY") {
				l.heard = append(l.heard, all)
			}
			l.mutex.Unlock()
			handler(w, r)
		}),
	}}
	server.Start()
	t.Cleanup(server.Close)
	return l
}

func (l *listener) secrets() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return append([]string{}, l.heard...)
}

// anywhere is a client that may reach all of 127.0.0.0/8, also over plain HTTP.
func anywhere(t *testing.T) *http.Client {
	t.Helper()
	client := guard.AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		InsecureHosts: []string{"127.0.0.1", "127.0.0.2"},
	}.HTTPClient(fetch.DefaultLimits())
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func give(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(map[string]string{"token": "CANARY-token"})
}

// TestM12LoginStaysWhereItBelongs has a registry on 127.0.0.1 that leads to another server on 127.0.0.2, which must not
// hear the login.
func TestM12LoginStaysWhereItBelongs(t *testing.T) {
	var mutex sync.Mutex
	var challenge, redirect string // what the registry does at present
	set := func(c, r string) {
		mutex.Lock()
		defer mutex.Unlock()
		challenge, redirect = c, r
	}
	asks := func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/asks") {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", "http://"+r.Host+"/token"))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		give(w, r)
	}
	other, neighbour := eavesdrop(t, "127.0.0.2", asks), eavesdrop(t, "127.0.0.1", asks)
	registry := eavesdrop(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		if redirect != "" && (r.URL.Path == "/token" || challenge == "") {
			http.Redirect(w, r, "http://"+redirect, http.StatusPermanentRedirect)
			return
		}
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
	})
	cases := map[string]struct{ reason, challenge, redirect string }{
		"Realm":           {"a token server elsewhere", `Bearer realm="http://` + other.host + `/token"`, ""},
		"RealmUser":       {"dressed up as the registry", `Bearer realm="http://` + registry.host + `@` + other.host + `/token"`, ""},
		"TokenRedirect":   {"the token server leads elsewhere", `Bearer realm="http://` + registry.host + `/token"`, other.host + "/token"},
		"AnswerFromOther": {"who was redirected to wants a login", "", other.host + "/asks"},
		"AnswerFromPort":  {"on the same machine, but not the registry", "", neighbour.host + "/asks"},
		"BasicFromOther":  {"who was redirected to gets none", "", other.host + "/any"},
	}
	logins := map[string]fetch.Login{
		"Password": {Username: user, Password: password},
		"Identity": {Username: registryauth.IdentityToken, Password: identity},
		"Token":    {Token: "CANARY-registry-token"},
	}
	for name, tc := range cases {
		for kind, login := range logins {
			t.Run(name+kind, func(t *testing.T) {
				set(tc.challenge, tc.redirect)
				_, _, err := pull(t, Options{
					Ref: registry.host + "/b:v1", Insecure: true, Client: anywhere(t), Limits: fetch.DefaultLimits(),
					Keychain: one(registry.host, login),
				})
				if got := append(other.secrets(), neighbour.secrets()...); err == nil || len(got) > 0 || strings.Contains(err.Error(), "CANARY") {
					t.Errorf("%s: %v; heard %q", tc.reason, err, got)
				}
			})
		}
	}
	if len(registry.secrets()) == 0 {
		t.Error("the registry heard no login either, so the test shows nothing")
	}
}

func TestM12TokenServerWithALoginOfItsOwn(t *testing.T) {
	u := small(t)
	push(t, u.host+"/b:v1", imageOf(t, layer(t, "a", "1")))
	var mutex sync.Mutex
	var heard []string
	tokens := eavesdrop(t, "127.0.0.2", func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := r.BasicAuth()
		mutex.Lock()
		heard = append(heard, name)
		mutex.Unlock()
		give(w, r)
	})
	registry := eavesdrop(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer CANARY-token" {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", "http://"+tokens.host+"/token"))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		u.Config.Handler.ServeHTTP(w, r)
	})
	o := Options{
		Ref: registry.host + "/b:v1", Insecure: true, Client: anywhere(t), Limits: fetch.DefaultLimits(),
		Keychain: one(registry.host, fetch.Login{Username: "registry", Password: "CANARY"}),
	}
	_, _, err := pull(t, o)
	if fetch.ReasonOf(err) != fetch.Unauthorized || !strings.Contains(err.Error(), "add one for \""+tokens.host+"\"") {
		t.Errorf("a login for the registry only: %v", err)
	}
	o.Keychain = registryauth.Keychains(o.Keychain, one(tokens.host, fetch.Login{Username: "tokens", Password: "CANARY"}))
	if _, _, err := pull(t, o); err != nil {
		t.Error(err)
	}
	if mutex.Lock(); len(heard) != 1 || heard[0] != "tokens" {
		t.Errorf("the token server heard %v", heard)
	}
	mutex.Unlock()
}

func TestM12NoLoginOverPlainHTTP(t *testing.T) {
	plain := eavesdrop(t, "127.0.0.1", give)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", "http://"+plain.host+"/token"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	policy := guard.AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, InsecureHosts: []string{"127.0.0.1"}}
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	client := policy.Client(fetch.DefaultLimits(), guard.Access{Roots: roots})
	t.Cleanup(client.CloseIdleConnections)
	host, login := strings.TrimPrefix(server.URL, "https://"), fetch.Login{Username: user, Password: password}
	_, _, err := pull(t, Options{
		Ref: host + "/b:v1", Client: client, Limits: fetch.DefaultLimits(),
		Keychain: registryauth.Keychains(one(host, login), one(plain.host, login)),
	})
	if got := plain.secrets(); fetch.ReasonOf(err) != fetch.Refused || len(got) > 0 {
		t.Errorf("%v; heard %q", err, got)
	}
}

func TestM12OddTokens(t *testing.T) {
	cases := map[string]struct{ reason, answer string }{
		"HTML":    {"a login page", "<html>CANARY"},
		"None":    {"nothing in it", `{"CANARY":"x"}`},
		"Newline": {"would forge a header", `{"token":"CANARY\r\nX: y"}`},
		"Space":   {"would forge a scheme", `{"token":"CANARY x"}`},
		"Long":    {"no header is that long", `{"token":"` + strings.Repeat("CANARY", 10_000) + `"}`},
		"Endless": {"no answer is that long", `{"x":"` + strings.Repeat("CANARY", 100_000) + `"}`},
		"Number":  {"no text", `{"token":7}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/token" {
					_, _ = io.WriteString(w, tc.answer)
					return
				}
				w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", "http://"+r.Host+"/token"))
				w.WriteHeader(http.StatusUnauthorized)
			}))
			_, _, err := pull(t, options(u.host+"/b:v1"))
			if fetch.ReasonOf(err) != fetch.Unauthorized || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestF14TokenServers(t *testing.T) {
	cases := map[string]struct {
		reason string
		code   int
		want   fetch.Reason
	}{
		"Limited":   {"the wish is passed on", http.StatusTooManyRequests, fetch.RateLimited},
		"Broken":    {"another time", http.StatusBadGateway, fetch.Unreachable},
		"BadGrant":  {"what OAuth2 servers say", http.StatusBadRequest, fetch.Unauthorized},
		"Forbidden": {"the login is refused", http.StatusForbidden, fetch.Unauthorized},
		"Gone":      {"not the image is what is missing", http.StatusNotFound, fetch.Unauthorized},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/token" {
					w.Header().Set("Retry-After", "30")
					w.WriteHeader(tc.code)
					return
				}
				w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", "http://"+r.Host+"/token"))
				w.WriteHeader(http.StatusUnauthorized)
			}))
			_, _, err := pull(t, options(u.host+"/b:v1"))
			if fetch.ReasonOf(err) != tc.want {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if tc.want == fetch.RateLimited && waits(err) != 30 {
				t.Errorf("the server's wish is lost: %v", err)
			}
		})
	}
}
