// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// faulty puts a server before a repository that spoils answers of the wanted method.
func faulty(t *testing.T, r *repository, method string, spoil func(w http.ResponseWriter, q *http.Request, body []byte)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		target, err := url.Parse(r.url)
		if err != nil {
			t.Error(err)
			return
		}
		recorder := httptest.NewRecorder()
		httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host}).ServeHTTP(recorder, q)
		if q.Method == method {
			spoil(w, q, recorder.Body.Bytes())
			return
		}
		_, _ = w.Write(recorder.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	return server.URL + "/org/repo.git"
}

func TestF14Transfers(t *testing.T) {
	r := newRepository(t)
	r.files("main", "a", strings.Repeat("content that takes some bytes\n", 1000))
	reset := func(at float64) func(http.ResponseWriter, *http.Request, []byte) {
		return func(w http.ResponseWriter, _ *http.Request, body []byte) {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body[:int(float64(len(body))*at)])
			panic(http.ErrAbortHandler)
		}
	}
	status := func(code int) func(http.ResponseWriter, *http.Request, []byte) {
		return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(code)
		}
	}
	silence := func(_ http.ResponseWriter, q *http.Request, _ []byte) { <-q.Context().Done() }
	cases := map[string]struct {
		reason, method string
		spoil          func(http.ResponseWriter, *http.Request, []byte)
		want           fetch.Reason
		wait           time.Duration
	}{
		"ListReset":   {"in the references", http.MethodGet, reset(0.5), fetch.Unreachable, 0},
		"ListReset1":  {"at the first byte", http.MethodGet, reset(0), fetch.Unreachable, 0},
		"PackReset":   {"in the pack", http.MethodPost, reset(0.5), fetch.Unreachable, 0},
		"PackReset99": {"at the end of the pack", http.MethodPost, reset(0.99), fetch.Unreachable, 0},
		"PackShort":   {"fewer bytes than there are, and called complete", http.MethodPost, func(w http.ResponseWriter, _ *http.Request, body []byte) { _, _ = w.Write(body[:len(body)-8]) }, fetch.InvalidContent, 0},
		"PackNothing": {"nothing, and called complete", http.MethodPost, func(http.ResponseWriter, *http.Request, []byte) {}, fetch.InvalidContent, 0},
		"PackLimited": {"too many requests", http.MethodPost, status(429), fetch.RateLimited, 30 * time.Second},
		"PackBusy":    {"not now", http.MethodPost, status(503), fetch.Unreachable, 30 * time.Second},
		"ListBroken":  {"a failure", http.MethodGet, status(500), fetch.Unreachable, 30 * time.Second},
		"PackForeign": {"the login is gone", http.MethodPost, status(401), fetch.Unauthorized, 30 * time.Second},
		"ListSilence": {"no header comes", http.MethodGet, silence, fetch.Timeout, 0},
		"PackTrickles": {"the body stands still", http.MethodPost, func(w http.ResponseWriter, q *http.Request, body []byte) {
			_, _ = w.Write(body[:20])
			_ = http.NewResponseController(w).Flush()
			silence(w, q, nil)
		}, fetch.Timeout, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.want == fetch.Timeout {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
			}
			f := fetcher(t, Options{URL: faulty(t, r, tc.method, tc.spoil)})
			resolved, err := f.Resolve(ctx)
			if err == nil {
				err = fetchWithin(ctx, t, f, resolved)
			}
			var typed *fetch.Error
			if !errors.As(err, &typed) || typed.Reason != tc.want || typed.RetryAfter != tc.wait {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// fetchWithin fetches into a tree that must stay empty.
func fetchWithin(ctx context.Context, t *testing.T, f *Fetcher, r fetch.Resolved) error {
	t.Helper()
	tree, err := fetch.NewTree(t.TempDir(), f.limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	_, err = f.Fetch(ctx, r, tree)
	file, openErr := tree.FS().Open("a")
	if openErr == nil {
		t.Error("a file was written")
		_ = file.Close()
	}
	return err
}

// TestF14Recovers has a server that refuses, and then does not.
func TestF14Recovers(t *testing.T) {
	r := newRepository(t)
	r.files("main", "a", "1")
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, "later")
			return
		}
		r.forward(w, q)
	}))
	t.Cleanup(server.Close)
	f := fetcher(t, Options{URL: server.URL + "/org/repo.git", Login: fetch.Login{Token: "x"}})
	if _, err := f.Resolve(t.Context()); fetch.ReasonOf(err) != fetch.Unauthorized {
		t.Errorf("at first: %v", err)
	}
	resolved, err := f.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, files, err := fetchInto(t, f, resolved); err != nil || files["a"] != "1" {
		t.Errorf("then: %v %v", files, err)
	}
}
