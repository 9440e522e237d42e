// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

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
		want fetch.Reason
		text string
	}{
		"UnknownHost": {"http://satchel.invalid", fetch.Unreachable, ""},
		"Refused":     {"http://127.0.0.1:1", fetch.Unreachable, `127.0.0.1:1": connection refused: check the host and the port`},
		"Cut":         {cut.URL, fetch.Unreachable, "the transfer was cut"},
		"Silent":      {silent.URL, fetch.Timeout, "sent nothing for"},
		"NoTLS":       {strings.Replace(plain.URL, "http://", "https://", 1), fetch.Unreachable, ""},
		"Scheme":      {"ftp://127.0.0.1/x", fetch.Refused, "not supported"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client := policy.HTTPClient(fetch.DefaultLimits())
			client.Transport.(*guard).idle = 100 * time.Millisecond
			_, err := get(t, client, tc.url)
			if fetch.ReasonOf(err) != tc.want || !strings.Contains(err.Error(), tc.text) || strings.Count(err.Error(), "refused") > 1 {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestF14SameTextAtEachTry has failures with messages that would name a local port.
func TestF14SameTextAtEachTry(t *testing.T) {
	wanting := httptest.NewUnstartedServer(http.NotFoundHandler())
	wanting.TLS = &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAnyClientCert}
	wanting.Config.ErrorLog = log.New(io.Discard, "", 0)
	wanting.StartTLS()
	t.Cleanup(wanting.Close)
	roots := x509.NewCertPool()
	roots.AddCert(wanting.Certificate())
	reset := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}))
	t.Cleanup(reset.Close)
	for name, tc := range map[string]struct {
		url, text     string
		ofCertificate bool
	}{
		"Reset":       {reset.URL, "the transfer was cut: ", false},
		"Certificate": {wanting.URL, "the server does not agree to TLS, or to the client's certificate: ", true},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			for range 2 {
				_, err := get(t, local().Client(fetch.DefaultLimits(), Access{Roots: roots}), tc.url)
				if fetch.ReasonOf(err) != fetch.Unreachable || !strings.Contains(err.Error(), tc.text) || fetch.OfCertificate(err) != tc.ofCertificate {
					t.Errorf("got %v, of a certificate: %v", err, fetch.OfCertificate(err))
				}
				said = append(said, fmt.Sprint(err))
			}
			if said[0] != said[1] {
				t.Errorf("each try says something else: %q", said)
			}
		})
	}
}

// TestF14RefusingProxy has a proxy that does not run, which is not the server's fault.
func TestF14RefusingProxy(t *testing.T) {
	proxy := &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	for _, server := range []string{"http://127.0.0.1:2/x", "https://127.0.0.1:2/x"} {
		_, err := get(t, local().Client(fetch.DefaultLimits(), Access{Proxy: proxy}), server)
		if fetch.ReasonOf(err) != fetch.Unreachable || !strings.Contains(err.Error(), "connection refused by the proxy: check its address") ||
			!errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
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
		_, err = local().HTTPClient(fetch.DefaultLimits()).Do(request) //nolint:bodyclose // there is no answer
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := ask(ctx); fetch.ReasonOf(err) != fetch.Timeout {
		t.Errorf("time is up: %v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	cancel()
	if err := ask(ctx); fetch.ReasonOf(err) != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled by the caller: %v", err)
	}
}

func TestErrorsHideUserInfo(t *testing.T) {
	_, err := get(t, local().HTTPClient(fetch.DefaultLimits()), "http://user:CANARY-password@127.0.0.1:1/")
	var wrapped *url.Error
	if !errors.As(err, &wrapped) || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("got %v", err)
	}
}

func TestErrorsHideSignedURLs(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/blob?X-Amz-Signature=CANARY-signature", http.StatusFound))
	t.Cleanup(server.Close)
	_, err := get(t, local().HTTPClient(fetch.DefaultLimits()), server.URL)
	if err = fetch.NetworkError(err); fetch.ReasonOf(err) != fetch.Unreachable || strings.Contains(err.Error(), "CANARY") ||
		!strings.Contains(err.Error(), "http://127.0.0.1:1/blob") {
		t.Errorf("got %v", err)
	}
}
