// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// local permits what a test server needs.
func local() AddressPolicy {
	return AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		InsecureHosts: []string{"127.0.0.1"},
	}
}

// canary is a server that must not be reached.
func canary(t *testing.T) *httptest.Server {
	t.Helper()
	var hits atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			hits.Add(1)
		}
	}
	server.Start()
	t.Cleanup(func() {
		server.Close()
		if n := hits.Load(); n > 0 {
			t.Errorf("%d connections reached the canary", n)
		}
	})
	return server
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
	_, port, err := net.SplitHostPort(strings.TrimPrefix(canary(t).URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::127.0.0.1]", "[::1]", "0.0.0.0",
		"127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::]",
	} {
		client := AddressPolicy{InsecureHosts: []string{strings.Trim(host, "[]")}}.HTTPClient(DefaultLimits())
		_, err := get(t, client, "http://"+host+":"+port)
		// The odd spellings are names to Go, so that they are unknown hosts where the resolver does not expand them.
		if r := ReasonOf(err); r != Refused && r != Unreachable {
			t.Errorf("%s: %v", host, err)
		} else if r == Refused && !strings.Contains(err.Error(), " is denied (") {
			t.Errorf("%s was refused for another reason: %v", host, err)
		}
	}
}

func TestM12RedirectToADeniedAddress(t *testing.T) {
	forbidden := canary(t)
	server := httptest.NewServer(http.RedirectHandler(
		strings.Replace(forbidden.URL, "127.0.0.1", "127.0.0.2", 1), http.StatusFound))
	t.Cleanup(server.Close)
	policy := AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		InsecureHosts: []string{"127.0.0.1", "127.0.0.2"},
	}
	if _, err := get(t, policy.HTTPClient(DefaultLimits()), server.URL); ReasonOf(err) != Refused {
		t.Errorf("got %v", err)
	}
}

func TestM12NoProxyFromEnvironment(t *testing.T) {
	proxy := canary(t)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	policy := AddressPolicy{InsecureHosts: []string{"satchel.invalid"}}
	if _, err := get(t, policy.HTTPClient(DefaultLimits()), "http://satchel.invalid/"); ReasonOf(err) != Unreachable {
		t.Errorf("got %v", err)
	}
}

func TestT15PlainHTTPOnlyToListedHosts(t *testing.T) {
	server := canary(t)
	policy := local()
	policy.InsecureHosts = []string{"127.0.0.1:1"}
	if _, err := get(t, policy.HTTPClient(DefaultLimits()), server.URL); ReasonOf(err) != Refused {
		t.Errorf("got %v", err)
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
	limits := DefaultLimits()
	if body, err := get(t, local().HTTPClient(limits), server.URL+"/5"); err != nil || body != "done" {
		t.Errorf("five redirects are the limit: %v", err)
	}
	for _, path := range []string{"/6", "/20"} {
		if _, err := get(t, local().HTTPClient(limits), server.URL+path); ReasonOf(err) != Refused {
			t.Errorf("%s: %v", path, err)
		}
	}
	limits.Redirects = 15
	if _, err := get(t, local().HTTPClient(limits), server.URL+"/15"); err != nil {
		t.Errorf("the limit is a flag, net/http has none of its own: %v", err)
	}
}

func TestM20HTTPSNeverBecomesHTTP(t *testing.T) {
	plain := canary(t)
	server := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(server.Close)
	client := trusting(server, DefaultLimits())
	if _, err := get(t, client, server.URL); ReasonOf(err) != Refused || !strings.Contains(err.Error(), "from https to http") {
		t.Errorf("got %v", err)
	}
	_, err := get(t, local().HTTPClient(DefaultLimits()), server.URL)
	if ReasonOf(err) != Unreachable || !strings.Contains(err.Error(), "certificate is not trusted") {
		t.Errorf("an unknown certificate: %v", err)
	}
}

// trusting is a guarded client that accepts the certificate of a test server.
func trusting(server *httptest.Server, l Limits) *http.Client {
	client := local().HTTPClient(l)
	client.Transport.(*guard).next.(*http.Transport).TLSClientConfig =
		server.Client().Transport.(*http.Transport).TLSClientConfig
	return client
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
	response, err := local().HTTPClient(DefaultLimits()).Do(request)
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

func TestF14NetworkFailures(t *testing.T) {
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "short")
	}))
	t.Cleanup(cut.Close)
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begin")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	plain := httptest.NewServer(nil)
	t.Cleanup(plain.Close)
	policy := local()
	policy.InsecureHosts = append(policy.InsecureHosts, "satchel.invalid")
	cases := map[string]struct {
		url  string
		want Reason
		text string
	}{
		"UnknownHost": {"http://satchel.invalid", Unreachable, ""},
		"Refused":     {"http://127.0.0.1:1", Unreachable, "connection refused"},
		"Cut":         {cut.URL, Unreachable, "the transfer was cut"},
		"Silent":      {silent.URL, Timeout, "sent nothing for"},
		"NoTLS":       {strings.Replace(plain.URL, "http://", "https://", 1), Unreachable, ""},
		"Scheme":      {"ftp://127.0.0.1/x", Refused, "not supported"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client := policy.HTTPClient(DefaultLimits())
			client.Transport.(*guard).idle = 100 * time.Millisecond
			_, err := get(t, client, tc.url)
			if ReasonOf(err) != tc.want || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestF14ContextEnds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(server.Close)
	ask := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = local().HTTPClient(DefaultLimits()).Do(request) //nolint:bodyclose // there is no answer
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := ask(ctx); ReasonOf(err) != Timeout {
		t.Errorf("time is up: %v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	cancel()
	if err := ask(ctx); ReasonOf(err) != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled by the caller: %v", err)
	}
}

func TestStatusError(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[int]Reason{
		404: NotFound, 410: NotFound, 401: Unauthorized, 403: Unauthorized, 429: RateLimited, 408: Timeout,
		500: Unreachable, 503: Unreachable, 504: Timeout, 206: Unreachable, 400: Unreachable,
	}
	for code, want := range cases {
		if got := StatusError(code, nil, ""); got.Reason != want || !strings.Contains(got.Error(), fmt.Sprint(code)) {
			t.Errorf("%d: %v %v", code, got.Reason, got)
		}
	}
	if got := StatusError(429, http.Header{"Retry-After": {"30"}}, "TOOMANYREQUESTS"); got.RetryAfter != 30*time.Second ||
		!strings.Contains(got.Error(), "429 TOOMANYREQUESTS") {
		t.Errorf("%v %v", got.RetryAfter, got)
	}
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "-5": 0, "x": 0, "99999999": time.Hour, "Thu, 01 Jan 2026 00:01:00 GMT": time.Minute,
		"Wed, 31 Dec 2025 00:00:00 GMT": 0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}

func TestErrorsHideUserInfo(t *testing.T) {
	_, err := get(t, local().HTTPClient(DefaultLimits()), "http://user:CANARY-password@127.0.0.1:1/")
	var wrapped *url.Error
	if !errors.As(err, &wrapped) || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("got %v", err)
	}
}

func TestErrorsHideSignedURLs(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/blob?X-Amz-Signature=CANARY-signature", http.StatusFound))
	t.Cleanup(server.Close)
	_, err := get(t, local().HTTPClient(DefaultLimits()), server.URL)
	if err = NetworkError(err); ReasonOf(err) != Unreachable || strings.Contains(err.Error(), "CANARY") ||
		!strings.Contains(err.Error(), "http://127.0.0.1:1/blob") {
		t.Errorf("got %v", err)
	}
}
