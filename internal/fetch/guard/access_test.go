// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func rootsOf(servers ...*httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, server := range servers {
		pool.AddCert(server.Certificate())
	}
	return pool
}

// clientCertificate is one that its own key signed.
func clientCertificate(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// asking is a TLS server that asks for a client certificate and records the one it got.
func asking(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *atomic.Value) {
	t.Helper()
	var seen atomic.Value
	seen.Store("")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			seen.Store(r.TLS.PeerCertificates[0].Subject.CommonName)
		}
		handler(w, r)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, &seen
}

func TestM12ClientCertificateIsForOneServer(t *testing.T) {
	second, atSecond := asking(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") })
	first, atFirst := asking(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, second.URL, http.StatusFound) })
	client := local().Client(fetch.DefaultLimits(), Access{
		Server: strings.TrimPrefix(first.URL, "https://"), Certificate: clientCertificate(t, "team-a"), Roots: rootsOf(first, second),
	})
	if body, err := get(t, client, first.URL); err != nil || body != "done" {
		t.Fatalf("got %q, %v", body, err)
	}
	if atFirst.Load() != "team-a" || atSecond.Load() != "" {
		t.Errorf("the certificate of %q was shown to its server, %q to the other", atFirst.Load(), atSecond.Load())
	}
}

// proxy forwards what CONNECT asks for, and plain requests, and counts both.
func proxy(t *testing.T) (*httptest.Server, *atomic.Int32, *atomic.Value) {
	t.Helper()
	var requests atomic.Int32
	var login atomic.Value
	login.Store("")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		login.Store(r.Header.Get("Proxy-Authorization"))
		if r.Method != http.MethodConnect {
			_, _ = io.WriteString(w, "plain")
			return
		}
		tunnel(w, r)
	}))
	t.Cleanup(server.Close)
	return server, &requests, &login
}

func tunnel(w http.ResponseWriter, r *http.Request) {
	to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, "no way", http.StatusBadGateway)
		return
	}
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = to.Close()
		return
	}
	_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
	_, _ = io.Copy(from, to)
	_ = from.Close()
}

func TestProxyIsUsedAndBound(t *testing.T) {
	through, requests, login := proxy(t)
	address, err := url.Parse(through.URL)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("me", "CANARY-proxy")
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "seen "+r.Header.Get("Proxy-Authorization"))
	}))
	t.Cleanup(server.Close)
	client := local().Client(fetch.DefaultLimits(), Access{Proxy: address, Roots: rootsOf(server)})
	if body, err := get(t, client, server.URL); err != nil || body != "seen " {
		t.Fatalf("got %q, %v", body, err)
	}
	if requests.Load() != 1 || !strings.HasPrefix(login.Load().(string), "Basic ") {
		t.Errorf("the proxy saw %d requests, login %q", requests.Load(), login.Load())
	}
	if _, err := get(t, AddressPolicy{}.Client(fetch.DefaultLimits(), Access{Proxy: address}), "https://example.org/"); fetch.ReasonOf(err) != fetch.Refused ||
		strings.Contains(err.Error(), "CANARY") {
		t.Errorf("a proxy at an address that is denied: %v", err)
	}
}

// TestT14ProxyIsNoWayAround: the proxy resolves names, so that only numbers can be judged here.
func TestT14ProxyIsNoWayAround(t *testing.T) {
	through, requests, _ := proxy(t)
	address, err := url.Parse(through.URL)
	if err != nil {
		t.Fatal(err)
	}
	policy := local()
	policy.Deny = policy.Allow[1:] // ::1
	client := policy.Client(fetch.DefaultLimits(), Access{Proxy: address})
	for _, host := range []string{
		"169.254.169.254", "[fe80::1]", "[::1]", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "[::ffff:169.254.169.254]", "169.254.169.254.",
	} {
		if _, err := get(t, client, "https://"+host+"/"); fetch.ReasonOf(err) != fetch.Refused {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := get(t, AddressPolicy{Allow: nil}.Client(fetch.DefaultLimits(), Access{Proxy: address}), "https://localhost/"); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("localhost: %v", err)
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("the proxy saw %d requests", n)
	}
}

func TestSystemRoots(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	pool, ok := SystemRoots(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if !ok || pool == nil {
		t.Fatal("a certificate was not read")
	}
	if _, ok := SystemRoots([]byte("-----BEGIN CERTIFICATE-----")); ok {
		t.Error("half a certificate was read")
	}
}

func TestLogin(t *testing.T) {
	tests := map[string]struct {
		login fetch.Login
		want  string
	}{
		"anonymous":     {fetch.Login{}, ""},
		"password":      {fetch.Login{Username: "me", Password: "x"}, "Basic bWU6eA=="},
		"password only": {fetch.Login{Password: "x"}, "Basic Ong="},
		"token":         {fetch.Login{Username: "me", Password: "x", Token: "t"}, "Bearer t"},
	}
	for name, tt := range tests {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		tt.login.Authorize(request)
		if got := request.Header.Get("Authorization"); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
