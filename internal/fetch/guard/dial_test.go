// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// greeting is a server that speaks first, as those of SSH do.
func greeting(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "hello")
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

func TestT14DialerJudgesResolvedAddresses(t *testing.T) {
	address := greeting(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := local().Dialer(Access{})(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(conn); string(said) != "hello" || err != nil {
		t.Errorf("got %q, %v", said, err)
	}
	_ = conn.Close()
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1", "0.0.0.0"} {
		if _, err := (AddressPolicy{}).Dialer(Access{})(t.Context(), "tcp", net.JoinHostPort(host, port)); fetch.ReasonOf(err) != fetch.Refused {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := local().Dialer(Access{})(t.Context(), "tcp", "127.0.0.1:1"); fetch.ReasonOf(err) != fetch.Unreachable {
		t.Errorf("connection refused: %v", err)
	}
}

func TestT14DialerThroughAProxy(t *testing.T) {
	through, requests, login := proxy(t)
	way, err := url.Parse(through.URL)
	if err != nil {
		t.Fatal(err)
	}
	way.User = url.UserPassword("me", "CANARY-proxy")
	dial := local().Dialer(Access{Proxy: way})
	conn, err := dial(t.Context(), "tcp", greeting(t))
	if err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(conn); string(said) != "hello" || err != nil {
		t.Errorf("got %q, %v", said, err)
	}
	_ = conn.Close()
	if requests.Load() != 1 || login.Load() != "Basic bWU6Q0FOQVJZLXByb3h5" {
		t.Errorf("the proxy saw %d requests, login %q", requests.Load(), login.Load())
	}
	for _, address := range []string{"169.254.169.254:22", "[fe80::1]:22", "2852039166:22", "no port"} {
		if _, err := dial(t.Context(), "tcp", address); fetch.ReasonOf(err) != fetch.Refused {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := dial(t.Context(), "tcp", "127.0.0.1:1"); fetch.ReasonOf(err) != fetch.Unreachable || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("the proxy gets no connection: %v", err)
	}
	if _, err := (AddressPolicy{}).Dialer(Access{Proxy: way})(t.Context(), "tcp", "example.org:22"); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("a proxy at an address that is denied: %v", err)
	}
	socks := &url.URL{Scheme: "socks5", Host: way.Host}
	if _, err := local().Dialer(Access{Proxy: socks})(t.Context(), "tcp", "example.org:22"); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("a proxy of another kind: %v", err)
	}
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	t.Cleanup(refusing.Close)
	if way, err = url.Parse(refusing.URL); err != nil {
		t.Fatal(err)
	}
	if _, err := local().Dialer(Access{Proxy: way})(t.Context(), "tcp", "example.org:22"); fetch.ReasonOf(err) != fetch.Unauthorized {
		t.Errorf("a proxy that wants a login: %v", err)
	}
}

// TestF14SilentProxy has a proxy that accepts and says nothing.
func TestF14SilentProxy(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	way := &url.URL{Scheme: "http", Host: listener.Addr().String()}
	if _, err := local().Dialer(Access{Proxy: way})(ctx, "tcp", "example.org:22"); fetch.ReasonOf(err) != fetch.Timeout {
		t.Errorf("got %v", err)
	}
}

// silent is a body that says nothing until it is closed.
type silent struct{ closed chan struct{} }

func (s *silent) Read([]byte) (int, error) {
	<-s.closed
	return 0, errors.New("closed")
}

func (s *silent) Close() error { return nil }

func TestF14PacedEndsSilence(t *testing.T) {
	body := &silent{make(chan struct{})}
	ctx, cancel := context.WithCancelCause(t.Context())
	context.AfterFunc(ctx, func() { close(body.closed) })
	watched, ok := Paced(ctx, cancel, body).(*guardedBody)
	if !ok {
		t.Fatal("not watched")
	}
	watched.guard.idle = 10 * time.Millisecond
	watched.timer.Reset(watched.guard.idle)
	if _, err := watched.Read(make([]byte, 1)); fetch.ReasonOf(err) != fetch.Timeout {
		t.Errorf("got %v", err)
	}
}
