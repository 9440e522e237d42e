// SPDX-License-Identifier: Apache-2.0

package http

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// taken takes a connection away from the server.
func taken(w http.ResponseWriter) net.Conn {
	conn, buffer, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_ = buffer.Flush()
	return conn
}

// drip writes a byte every now and then, until the peer closes.
func drip(conn net.Conn, text string) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for _, b := range []byte(text) {
		if _, err := conn.Write([]byte{b}); err != nil {
			break
		}
		<-tick.C
	}
	_ = conn.Close()
}

// cutAt sends an answer of which only so many bytes come.
func cutAt(data []byte, at int, reset bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn := taken(w)
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(data))
		_, _ = io.Copy(conn, bytes.NewReader(data[:at]))
		if reset {
			_ = conn.(*net.TCPConn).SetLinger(0)
		} else {
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
		}
		_ = conn.Close()
	}
}

// signed accepts every signature.
type signed struct{}

func (signed) VerifyBlob(context.Context, fetch.Digest, []byte) (string, error) {
	return "a signer", nil
}

// TestF14FaultsAtEachRequest has each fault at each request of a fetch, which ends in time, leaves nothing, and works again
// after it.
func TestF14FaultsAtEachRequest(t *testing.T) {
	data := gzipped(t, packed(t, "a", strings.Repeat("0123456789abcdef", 4000)))
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(code)
		}
	}
	half := len(data) / 2
	faults := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   fetch.Reason
		head   bool // it matters to a HEAD request as well, which has no body
	}{
		"500":        {"another time", status(500), fetch.Unreachable, true},
		"502":        {"another time", status(502), fetch.Unreachable, true},
		"503":        {"another time", status(503), fetch.Unreachable, true},
		"504":        {"another time", status(504), fetch.Timeout, true},
		"429":        {"too often", status(429), fetch.RateLimited, true},
		"401":        {"not for us", status(401), fetch.Unauthorized, true},
		"Reset0":     {"at the first byte", cutAt(data, 0, true), fetch.Unreachable, false},
		"Reset1":     {"at the second byte", cutAt(data, 1, true), fetch.Unreachable, false},
		"Reset50":    {"in mid-answer", cutAt(data, half, true), fetch.Unreachable, false},
		"Reset99":    {"at the last byte", cutAt(data, len(data)-1, true), fetch.Unreachable, false},
		"HalfClosed": {"in mid-answer", cutAt(data, half, false), fetch.Unreachable, false},
		"SlowHeader": {"a byte at a time", func(w http.ResponseWriter, _ *http.Request) {
			drip(taken(w), "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1000))
		}, fetch.Timeout, true},
		"SlowBody": {"a byte at a time", func(w http.ResponseWriter, _ *http.Request) {
			conn := taken(w)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
			drip(conn, string(data))
		}, fetch.Timeout, false},
		"Silent": {"nothing at all", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(io.Discard, taken(w))
		}, fetch.Timeout, true},
		"Garbage": {"no HTTP", func(w http.ResponseWriter, _ *http.Request) {
			conn := taken(w)
			_, _ = io.WriteString(conn, "\x15\x03\x01\x00\x02\x02\x28")
			_ = conn.Close()
		}, fetch.Unreachable, true},
		"Hints": {"answers before the answer, without end", func(w http.ResponseWriter, _ *http.Request) {
			conn := taken(w)
			for range 100 {
				_, _ = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
			}
			_ = conn.Close()
		}, fetch.Unreachable, true},
		"Headers": {"a header without end", func(w http.ResponseWriter, _ *http.Request) {
			conn := taken(w)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+strings.Repeat("ETag: \"x\"\r\n", 100_000))
			_ = conn.Close()
		}, fetch.Unreachable, true},
		"Trailers": {"a trailer without end", func(w http.ResponseWriter, _ *http.Request) {
			conn := taken(w)
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n%x\r\n%s\r\n0\r\n", len(data), data)
			_, _ = io.WriteString(conn, strings.Repeat("X-Trailer: x\r\n", 100_000))
			_ = conn.Close()
		}, fetch.Unreachable, false},
		"Chunk": {"a chunk of an impossible size", func(w http.ResponseWriter, _ *http.Request) {
			conn := taken(w)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n")
			_ = conn.Close()
		}, fetch.Unreachable, false},
	}
	stages := map[string]func(*http.Request) bool{
		"Head":      func(r *http.Request) bool { return r.Method == http.MethodHead },
		"Archive":   func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Path == "/b.tgz" },
		"Signature": func(r *http.Request) bool { return r.URL.Path == "/b.tgz.sig" },
	}
	for fault, tc := range faults {
		for at, hit := range stages {
			if at == "Head" && !tc.head {
				continue
			}
			t.Run(fault+at, func(t *testing.T) {
				t.Parallel()
				broken := make(chan bool, 1)
				broken <- true
				url := serve(t, func(w http.ResponseWriter, r *http.Request) {
					is := <-broken
					broken <- is
					if is && hit(r) {
						tc.answer(w, r)
						return
					}
					_, _ = w.Write(data)
				})
				limit := 30 * time.Second
				if tc.want == fetch.Timeout && fault != "504" {
					limit = 500 * time.Millisecond // what ends it
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				o := Options{URL: url + "/b.tgz", Signature: url + "/b.tgz.sig", Verify: signed{}, Client: client(t), Limits: fetch.DefaultLimits()}
				began := time.Now()
				err := resolveAndFetch(ctx, t, o)
				if took := time.Since(began); took > limit+5*time.Second {
					t.Errorf("it took %v", took)
				}
				var typed *fetch.Error
				if !errors.As(err, &typed) || typed.Reason != tc.want || len(err.Error()) > 1000 {
					t.Errorf("%s: %v", tc.reason, err)
				} else if code := strings.HasPrefix(tc.reason, "another time") || fault == "429"; code != (typed.RetryAfter == 30*time.Second) && fault != "401" {
					t.Errorf("%s: the server's wish became %v", tc.reason, typed.RetryAfter)
				}
				<-broken
				broken <- false
				if err := resolveAndFetch(t.Context(), t, o); err != nil {
					t.Errorf("once it is over: %v", err)
				}
			})
		}
	}
}

// resolveAndFetch fetches into a new tree, which after a failure has nothing in it but what was verified later.
func resolveAndFetch(ctx context.Context, t *testing.T, o Options) error {
	t.Helper()
	defer o.Client.CloseIdleConnections()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := fetch.NewTree(t.TempDir(), o.Limits)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	resolved, err := f.Resolve(ctx)
	if err != nil {
		return err
	}
	_, err = f.Fetch(ctx, resolved, tree)
	return err
}

// TestF14OfTLS has servers with failing TLS handshakes.
func TestF14OfTLS(t *testing.T) {
	alert := httptest.NewUnstartedServer(http.NotFoundHandler())
	alert.TLS = &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAnyClientCert}
	alert.StartTLS()
	t.Cleanup(alert.Close)
	plain := strings.Replace(serve(t, http.NotFound), "http://", "https://", 1)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for url, want := range map[string][]fetch.Reason{
		alert.URL: {fetch.Unreachable}, plain: {fetch.Unreachable}, "https://" + silent.Addr().String(): {fetch.Timeout},
		"https://satchel.invalid": {fetch.Unreachable},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		err := resolveAndFetch(ctx, t, Options{URL: url + "/b.tgz", Client: client(t), Limits: fetch.DefaultLimits()})
		cancel()
		if !slices.Contains(want, fetch.ReasonOf(err)) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestF17ReplacedBetweenHeadAndGet: what is recorded is of the bytes that came, and a digest that is known must be theirs.
func TestF17ReplacedBetweenHeadAndGet(t *testing.T) {
	before, after := gzipped(t, packed(t, "a", "1")), gzipped(t, packed(t, "a", "2"))
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Length", fmt.Sprint(1<<40)) // it lies
			return
		}
		w.Header().Set("ETag", `"2"`)
		_, _ = w.Write(after)
	}) + "/b.tgz"
	f, err := New(Options{URL: url, Client: client(t), Limits: fetch.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := f.Resolve(t.Context())
	if err != nil || resolved.Validator != `"1"` {
		t.Fatalf("%+v, %v", resolved, err)
	}
	got, files, err := pull(t, Options{URL: url}, resolved)
	if err != nil || files["a"] != "2" || got.Digest != fetch.SHA256(after).String() || got.Validator != `"2"` || got.Same(resolved) {
		t.Errorf("%+v, %v, %v", got, files, err)
	}
	_, files, err = pull(t, Options{URL: url}, fetch.Resolved{Digest: fetch.SHA256(before).String()})
	if fetch.ReasonOf(err) != fetch.DigestMismatch || len(files) > 0 {
		t.Errorf("another digest was known: %v, %v", files, err)
	}
}
