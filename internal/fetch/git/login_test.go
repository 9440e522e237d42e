// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
)

// private is a repository that is shown only to clients with a header, and records what it received.
type private struct {
	*repository
	mutex sync.Mutex
	told  []string // "<path> <Authorization>"
}

// guarded puts a server before a repository. Without a header that it wants it notes only.
func guarded(t *testing.T, r *repository, want string) (*private, *httptest.Server) {
	t.Helper()
	p := &private{repository: r}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		got := q.Header.Get("Authorization")
		p.mutex.Lock()
		p.told = append(p.told, q.URL.Path+" "+got)
		p.mutex.Unlock()
		if want != "" && got != want {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.forward(w, q)
	}))
	t.Cleanup(server.Close)
	return p, server
}

func (p *private) heard() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	told := p.told
	p.told = nil
	return told
}

func TestLogins(t *testing.T) {
	r := newRepository(t)
	r.files("main", "a", "1")
	const basic = "Basic dXNlcjpDQU5BUlktcGFzc3dvcmQ=" // user:CANARY-password
	cases := map[string]struct {
		reason, want string
		login        fetch.Login
		err          fetch.Reason
		text         string
	}{
		"Basic":     {"user name and password", basic, fetch.Login{Username: "user", Password: "CANARY-password"}, "", ""},
		"Bearer":    {"a token", "Bearer CANARY-token", fetch.Login{Token: "CANARY-token"}, "", ""},
		"Both":      {"the token counts", "Bearer CANARY-token", fetch.Login{Username: "u", Password: "p", Token: "CANARY-token"}, "", ""},
		"Wrong":     {"the message names no secret", basic, fetch.Login{Username: "user", Password: "CANARY-other"}, fetch.Unauthorized, "check the credentials"},
		"None":      {"a private repository", basic, fetch.Login{}, fetch.Unauthorized, "that the repository is public"},
		"NameAlone": {"some servers take a token as user name", "Basic Q0FOQVJZOg==", fetch.Login{Username: "CANARY"}, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, server := guarded(t, r, tc.want)
			_, files, err := pull(t, Options{URL: server.URL + "/org/repo.git", Login: tc.login})
			if fetch.ReasonOf(err) != tc.err || err == nil && files["a"] != "1" {
				t.Fatalf("%s: %v %v", tc.reason, files, err)
			}
			if err != nil && (strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), tc.text)) {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if err == nil {
				want := []string{"/org/repo.git/info/refs " + tc.want, "/org/repo.git/info/refs " + tc.want, "/org/repo.git/git-upload-pack " + tc.want}
				if diff := cmp.Diff(want, p.heard()); diff != "" {
					t.Errorf("each request carries it: %s", diff)
				}
			}
		})
	}
	for name, login := range map[string]fetch.Login{
		"LineFeed": {Token: "CANARY\n"}, "Injection": {Token: "CANARY\r\nX: y"}, "Password": {Username: "u", Password: "CANARY\n"},
		"Colon": {Username: "CANARY:x", Password: "y"},
	} {
		_, err := New(Options{URL: "https://example.org/r", Login: login, Client: client()})
		if fetch.ReasonOf(err) != fetch.Refused || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestM18LoginStaysWithItsServer redirects the list of references to another host, another port, and back.
func TestM18LoginStaysWithItsServer(t *testing.T) {
	r := newRepository(t)
	r.files("main", "a", "1")
	login := fetch.Login{Username: "user", Password: "CANARY-password"}
	other, second := guarded(t, r, "")
	redirecting := func(code int, target string) (string, *[]string) {
		told := &[]string{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			*told = append(*told, q.Header.Get("Authorization"))
			http.Redirect(w, q, target+q.URL.RequestURI(), code)
		}))
		t.Cleanup(server.Close)
		return server.URL + "/org/repo.git", told
	}
	targets := map[string]string{
		"Port": second.URL, "Host": strings.Replace(second.URL, "127.0.0.1", "localhost", 1),
	}
	for name, target := range targets {
		for _, code := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(name, code), func(t *testing.T) {
				first, told := redirecting(code, target)
				_, files, err := pull(t, Options{URL: first, Login: login})
				if err != nil || files["a"] != "1" {
					t.Fatalf("a repository that has moved: %v %v", files, err)
				}
				if len(*told) == 0 || (*told)[0] == "" {
					t.Errorf("its server was not told: %q", *told)
				}
				heard := other.heard()
				if len(heard) == 0 {
					t.Error("nothing came to the other server, so this tested nothing")
				}
				for _, request := range heard {
					if !strings.HasSuffix(request, " ") {
						t.Errorf("the other server was told: %s", request)
					}
				}
			})
		}
	}
}

// TestM18LoginOverPlainHTTP has a host that no flag lists.
func TestM18LoginOverPlainHTTP(t *testing.T) {
	canary := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		t.Errorf("a request came: %v", q.Header)
	}))
	t.Cleanup(canary.Close)
	strict := guard.AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}.HTTPClient(fetch.DefaultLimits())
	_, _, err := pull(t, Options{URL: canary.URL, Login: fetch.Login{Token: "CANARY"}, Client: strict})
	if fetch.ReasonOf(err) != fetch.Refused || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("got %v", err)
	}
	secure := httptest.NewTLSServer(http.RedirectHandler(canary.URL+"/info/refs", http.StatusFound))
	t.Cleanup(secure.Close)
	access := guard.Access{Roots: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	local := guard.AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, InsecureHosts: []string{"127.0.0.1"}}
	_, _, err = pull(t, Options{URL: secure.URL, Login: fetch.Login{Token: "CANARY"}, Client: local.Client(fetch.DefaultLimits(), access)})
	if fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), "from https to http") {
		t.Errorf("got %v", err)
	}
}

// TestM18RequestForObjectsIsNotRedirected would send the login on, if the redirect were followed without the guard.
func TestM18RequestForObjectsIsNotRedirected(t *testing.T) {
	r := newRepository(t)
	r.files("main", "a", "1")
	other, second := guarded(t, r, "")
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodPost {
			http.Redirect(w, q, second.URL+q.URL.RequestURI(), http.StatusTemporaryRedirect)
			return
		}
		r.forward(w, q)
	}))
	t.Cleanup(first.Close)
	_, files, err := pull(t, Options{URL: first.URL + "/org/repo.git", Login: fetch.Login{Token: "CANARY"}})
	if fetch.ReasonOf(err) != fetch.Unreachable || len(files) > 0 {
		t.Errorf("got %v %v", files, err)
	}
	if heard := other.heard(); len(heard) > 0 {
		t.Errorf("the other server was asked: %v", heard)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/login" {
			http.Redirect(w, q, "/login", http.StatusFound)
		}
	}))
	t.Cleanup(page.Close)
	if _, _, err := pull(t, Options{URL: page.URL}); fetch.ReasonOf(err) != fetch.NotFound {
		t.Errorf("a page to log in: %v", err)
	}
}

// forward hands a request to the repository's server.
func (r *repository) forward(w http.ResponseWriter, q *http.Request) {
	target, err := url.Parse(r.url)
	if err != nil {
		r.t.Error(err)
	}
	httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host}).ServeHTTP(w, q)
}
