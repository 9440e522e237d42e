// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// stage is one of the requests that a pull makes.
type stage struct {
	name   string
	method string
	path   string // a part of it
}

var stages = []stage{
	{"Tags", http.MethodGet, "/tags/list"},
	{"Head", http.MethodHead, "/manifests/"},
	{"Manifest", http.MethodGet, "/manifests/"},
	{"Layer", http.MethodGet, "/blobs/"},
	{"Token", http.MethodGet, "/token"},
}

// taken takes a connection away from the server.
func taken(w http.ResponseWriter) (*net.TCPConn, io.Writer) {
	conn, buffer, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_ = buffer.Flush()
	return conn.(*net.TCPConn), conn
}

// harmless are the faults that do not matter to a HEAD request: it has no body, and a GET finds the words for a refusal.
var harmless = []string{"Reset", "HalfClosed", "SlowBody", "401"}

const partOfAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Type: application/json\r\n\r\n{\"a"

// faults are what servers and networks do.
var faults = map[string]struct {
	reason string
	answer func(w http.ResponseWriter, r *http.Request)
	want   []fetch.Reason
}{
	"500": {"another time", status(500), []fetch.Reason{fetch.Unreachable}},
	"502": {"another time", status(502), []fetch.Reason{fetch.Unreachable}},
	"503": {"another time", status(503), []fetch.Reason{fetch.Unreachable}},
	"504": {"another time", status(504), []fetch.Reason{fetch.Timeout}},
	"429": {"too often", status(429), []fetch.Reason{fetch.RateLimited}},
	"401": {"not for us", status(401), []fetch.Reason{fetch.Unauthorized}},
	"Reset": {"in mid-answer", func(w http.ResponseWriter, _ *http.Request) {
		conn, out := taken(w)
		_, _ = io.WriteString(out, partOfAnswer)
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}, []fetch.Reason{fetch.Unreachable, fetch.DigestMismatch}},
	"HalfClosed": {"in mid-answer", func(w http.ResponseWriter, _ *http.Request) {
		conn, out := taken(w)
		_, _ = io.WriteString(out, partOfAnswer)
		_ = conn.CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}, []fetch.Reason{fetch.Unreachable, fetch.DigestMismatch}},
	"SlowHeader": {"a byte at a time", func(w http.ResponseWriter, _ *http.Request) {
		conn, out := taken(w)
		drip(conn, out, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1000))
	}, []fetch.Reason{fetch.Timeout}},
	"SlowBody": {"a byte at a time", func(w http.ResponseWriter, _ *http.Request) {
		conn, out := taken(w)
		_, _ = io.WriteString(out, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
		drip(conn, out, strings.Repeat(" ", 1000))
	}, []fetch.Reason{fetch.Timeout}},
	"Silent": {"nothing at all", func(w http.ResponseWriter, _ *http.Request) {
		conn, _ := taken(w)
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}, []fetch.Reason{fetch.Timeout}},
	"Garbage": {"no HTTP", func(w http.ResponseWriter, _ *http.Request) {
		conn, out := taken(w)
		_, _ = io.WriteString(out, "\x15\x03\x01\x00\x02\x02\x28")
		_ = conn.Close()
	}, []fetch.Reason{fetch.Unreachable}},
}

func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(code)
	}
}

// drip writes a byte every now and then, until the peer closes.
func drip(conn net.Conn, out io.Writer, text string) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for _, b := range []byte(text) {
		if _, err := out.Write([]byte{b}); err != nil {
			break
		}
		<-tick.C
	}
	_ = conn.Close()
}

// TestF14FaultsAtEachRequest has each fault at each request of a pull, which ends in time and works again after it.
func TestF14FaultsAtEachRequest(t *testing.T) {
	content := small(t)
	img := imageOf(t, layer(t, "a", "1"))
	push(t, content.host+"/b:1.0.0", img)
	for fault, tc := range faults {
		for _, at := range stages {
			if at.method == http.MethodHead && slices.Contains(harmless, fault) {
				continue
			}
			t.Run(fault+at.name, func(t *testing.T) {
				t.Parallel()
				u := serve(t, loggedIn(content.Config.Handler))
				u.alter(func(w http.ResponseWriter, r *http.Request) bool {
					hit := r.Method == at.method && strings.Contains(r.URL.Path, at.path)
					if hit {
						tc.answer(w, r)
					}
					return hit
				})
				f, err := New(ranged(u.host+"/b", "*"))
				if err != nil {
					t.Fatal(err)
				}
				limit := 30 * time.Second
				if slices.Contains(tc.want, fetch.Timeout) && fault != "504" {
					limit = 500 * time.Millisecond // what ends it
				}
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				defer cancel()
				began := time.Now()
				err = pullWith(ctx, t, f)
				if took := time.Since(began); took > limit+5*time.Second {
					t.Errorf("it took %v", took)
				}
				if !slices.Contains(tc.want, fetch.ReasonOf(err)) || !strings.HasPrefix(err.Error(), "image "+u.host+"/b: ") {
					t.Errorf("%s: %q: %v", tc.reason, fetch.ReasonOf(err), err)
				}
				if fault == "429" && waits(err) != 30 {
					t.Errorf("the server's wish is lost: %v", err)
				}
				u.alter(nil)
				if err := pullWith(context.Background(), t, f); err != nil {
					t.Errorf("once it is over: %v", err)
				}
			})
		}
	}
}

// pullWith resolves and fetches into a new tree.
func pullWith(ctx context.Context, t *testing.T, f *Fetcher) error {
	t.Helper()
	defer f.places[0].client.CloseIdleConnections()
	tree, err := fetch.NewTree(t.TempDir(), fetch.DefaultLimits())
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

// loggedIn wants a token for everything.
func loggedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			_ = json.NewEncoder(w).Encode(map[string]string{"token": "t"})
		case r.Header.Get("Authorization") != "Bearer t":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", "http://"+r.Host+"/token"))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// TestF14ResetAtAnyByte cuts the transfer of a layer at some of its bytes.
func TestF14ResetAtAnyByte(t *testing.T) {
	blob := gzipped(t, packed(t, "a", strings.Repeat("0123456789abcdef", 4000)))
	u := small(t)
	push(t, u.host+"/b:v1", imageOf(t, staticLayer(blob)))
	for _, at := range []int{0, 1, len(blob) / 2, len(blob) - 1} {
		u.alter(onlyBlobs(func(w http.ResponseWriter, _ *http.Request) bool {
			conn, out := taken(w)
			_, _ = fmt.Fprintf(out, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(blob))
			_, _ = io.Copy(out, bytes.NewReader(blob[:at]))
			_ = conn.SetLinger(0)
			_ = conn.Close()
			return true
		}))
		_, files, err := pull(t, options(u.host+"/b:v1"))
		if r := fetch.ReasonOf(err); r != fetch.Unreachable || len(files) > 0 {
			t.Errorf("at byte %d of %d: %s %v", at, len(blob), r, err)
		}
	}
}
