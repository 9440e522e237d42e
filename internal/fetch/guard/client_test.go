// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/canary"
)

// local permits what a test server needs.
func local() AddressPolicy {
	return AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		InsecureHosts: []string{"127.0.0.1"},
	}
}

func get(t *testing.T, client *http.Client, url string) (string, error) {
	t.Helper()
	t.Cleanup(client.CloseIdleConnections)
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func TestT14LoopbackIsDeniedInTheDialer(t *testing.T) {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(canary.Serve(t).URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::127.0.0.1]", "[::1]", "0.0.0.0",
		"127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::]",
	} {
		client := AddressPolicy{InsecureHosts: []string{strings.Trim(host, "[]")}}.HTTPClient(fetch.DefaultLimits())
		_, err := get(t, client, "http://"+host+":"+port)
		// The odd spellings are names to Go, so that they are unknown hosts where the resolver does not expand them.
		if r := fetch.ReasonOf(err); r != fetch.Refused && r != fetch.Unreachable {
			t.Errorf("%s: %v", host, err)
		} else if r == fetch.Refused && !strings.Contains(err.Error(), " is denied (") {
			t.Errorf("%s was refused for another reason: %v", host, err)
		}
	}
}

func TestM12RedirectToADeniedAddress(t *testing.T) {
	forbidden := canary.Serve(t)
	server := httptest.NewServer(http.RedirectHandler(
		strings.Replace(forbidden.URL, "127.0.0.1", "127.0.0.2", 1), http.StatusFound))
	t.Cleanup(server.Close)
	policy := AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		InsecureHosts: []string{"127.0.0.1", "127.0.0.2"},
	}
	if _, err := get(t, policy.HTTPClient(fetch.DefaultLimits()), server.URL); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("got %v", err)
	}
}

func TestM12NoProxyFromEnvironment(t *testing.T) {
	proxy := canary.Serve(t)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	policy := AddressPolicy{InsecureHosts: []string{"satchel.invalid"}}
	if _, err := get(t, policy.HTTPClient(fetch.DefaultLimits()), "http://satchel.invalid/"); fetch.ReasonOf(err) != fetch.Unreachable {
		t.Errorf("got %v", err)
	}
}

func TestT15PlainHTTPOnlyToListedHosts(t *testing.T) {
	server := canary.Serve(t)
	policy := local()
	policy.InsecureHosts = []string{"127.0.0.1:1"}
	if _, err := get(t, policy.HTTPClient(fetch.DefaultLimits()), server.URL); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("got %v", err)
	}
}

// TestT15OtherSpellingsAreNotListed: behind a proxy as well, which would be asked in plain, only the listed host is spoken to
// over plain HTTP.
func TestT15OtherSpellingsAreNotListed(t *testing.T) {
	through, requests, _ := proxy(t)
	address, err := url.Parse(through.URL)
	if err != nil {
		t.Fatal(err)
	}
	policy := local()
	policy.InsecureHosts = []string{"registry.example:5000", "git.example"}
	for name, access := range map[string]Access{"straight": {}, "proxied": {Proxy: address}} {
		client := policy.Client(fetch.DefaultLimits(), access)
		for _, host := range []string{
			"registry.example", "registry.example:5001", "registry.example.:5000", "registry.example:05000", "git.example.", "git.example.evil.example",
			"evil-git.example", "git.example@evil.example", "git.exampl\u0435", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost",
		} {
			if _, err := get(t, client, "http://"+host+"/"); fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), "--insecure-hosts") {
				t.Errorf("%s, %s: %v", name, host, err)
			}
		}
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("the proxy saw %d requests", n)
	}
	if body, err := get(t, policy.Client(fetch.DefaultLimits(), Access{Proxy: address}), "http://GIT.example:3000/"); err != nil || body != "plain" {
		t.Errorf("the listed host: %q, %v", body, err)
	}
}

// TestM20RedirectsElsewhere follows no redirect to what is no web server, or to a host that is not listed.
func TestM20RedirectsElsewhere(t *testing.T) {
	for _, target := range []string{
		"file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x", "data:text/plain,x", "javascript:x", "unix:///run/x.sock", "http:///x",
		"http://localhost:1/x", "http://u:p@localhost:1/x", "//localhost:1/x", "http://127.0.0.1.:1/x", "http://[::ffff:127.0.0.1]:1/x",
	} {
		server := httptest.NewServer(http.RedirectHandler(target, http.StatusFound))
		if _, err := get(t, local().HTTPClient(fetch.DefaultLimits()), server.URL+"/a"); fetch.ReasonOf(err) != fetch.Refused {
			t.Errorf("%s: %v", target, err)
		}
		server.Close()
	}
}

func TestM20Redirects(t *testing.T) {
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var left int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &left); err != nil || left == 0 {
			_, _ = io.WriteString(w, "done")
			return
		}
		http.Redirect(w, r, fmt.Sprintf("%s/%d", server.URL, left-1), http.StatusFound)
	}))
	t.Cleanup(server.Close)
	limits := fetch.DefaultLimits()
	if body, err := get(t, local().HTTPClient(limits), server.URL+"/5"); err != nil || body != "done" {
		t.Errorf("five redirects are the limit: %v", err)
	}
	for _, path := range []string{"/6", "/20"} {
		if _, err := get(t, local().HTTPClient(limits), server.URL+path); fetch.ReasonOf(err) != fetch.Refused {
			t.Errorf("%s: %v", path, err)
		}
	}
	limits.Redirects = 15
	if _, err := get(t, local().HTTPClient(limits), server.URL+"/15"); err != nil {
		t.Errorf("the limit is a flag, net/http has none of its own: %v", err)
	}
}

func TestM20HTTPSNeverBecomesHTTP(t *testing.T) {
	plain := canary.Serve(t)
	server := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(server.Close)
	client := trusting(server, fetch.DefaultLimits())
	if _, err := get(t, client, server.URL); fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), "from https to http") {
		t.Errorf("got %v", err)
	}
	_, err := get(t, local().HTTPClient(fetch.DefaultLimits()), server.URL)
	if fetch.ReasonOf(err) != fetch.Unreachable || !strings.Contains(err.Error(), "certificate is not trusted") {
		t.Errorf("an unknown certificate: %v", err)
	}
}

// trusting is a guarded client that accepts the certificate of a test server.
func trusting(server *httptest.Server, l fetch.Limits) *http.Client {
	return local().Client(l, Access{Roots: rootsOf(server)})
}

func TestM20HeadersStayWithTheirServer(t *testing.T) {
	var other http.Header
	second := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { other = r.Header }))
	t.Cleanup(second.Close)
	var home http.Header
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		home = r.Header
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/again", http.StatusFound)
			return
		}
		http.Redirect(w, r, second.URL, http.StatusFound)
	}))
	t.Cleanup(first.Close)
	request, err := http.NewRequest(http.MethodGet, first.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Token", "Private-Token", "Accept"} {
		request.Header.Set(name, "CANARY-header")
	}
	response, err := local().HTTPClient(fetch.DefaultLimits()).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if home.Get("X-Token") == "" || home.Get("Authorization") == "" {
		t.Error("the same server must get them again")
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Token", "Private-Token", "Referer"} {
		if other.Get(name) != "" {
			t.Errorf("%s went to another server", name)
		}
	}
	if other.Get("Accept") == "" {
		t.Error("Accept is no secret")
	}
}
