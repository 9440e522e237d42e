// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestLoadErrors(t *testing.T) {
	answer := func(status int, body string, header ...string) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for i := 0; i < len(header); i += 2 {
					w.Header().Set(header[i], header[i+1])
				}
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
			})
		}
	}
	cases := map[string]struct {
		reason string
		wrap   func(http.Handler) http.Handler
		edit   func(*meta.Artifact)
		limits func(*fetch.Limits)
		want   fetch.Reason
	}{
		"gone":          {reason: "the source was deleted", wrap: answer(404, ""), want: fetch.NotFound},
		"forbidden":     {reason: "", wrap: answer(403, ""), want: fetch.Unauthorized},
		"rate limit":    {reason: "", wrap: answer(429, ""), want: fetch.RateLimited},
		"unavailable":   {reason: "the server must not serve what it has", wrap: answer(503, ""), want: fetch.Unreachable},
		"redirect":      {reason: "a redirect could lead anywhere", wrap: answer(302, "", "Location", "http://127.0.0.1:1/"), want: fetch.Refused},
		"no content":    {reason: "only 200 carries an archive", wrap: answer(204, ""), want: fetch.Unreachable},
		"other bytes":   {reason: "", wrap: flipped, want: fetch.DigestMismatch},
		"short":         {reason: "the connection ends before the length that was said", wrap: cut, want: fetch.Unreachable},
		"other size":    {reason: "", edit: func(a *meta.Artifact) { *a.Size++ }, want: fetch.DigestMismatch},
		"no length":     {reason: "", wrap: chunked, want: fetch.Refused},
		"wrong digest":  {reason: "", edit: func(a *meta.Artifact) { a.Digest = digestOf([]byte("x")) }, want: fetch.DigestMismatch},
		"no digest":     {reason: "", edit: func(a *meta.Artifact) { a.Digest = "" }, want: fetch.Refused},
		"weak digest":   {reason: "", edit: func(a *meta.Artifact) { a.Digest = "sha1:" + strings.Repeat("0", 40) }, want: fetch.Refused},
		"too large":     {reason: "it is refused before it is downloaded", limits: func(l *fetch.Limits) { l.ExtractedBytes, l.Entries = 1000, 1 }, want: fetch.LimitExceeded},
		"too many":      {reason: "", limits: func(l *fetch.Limits) { l.Entries = 1 }, want: fetch.LimitExceeded},
		"unpacked size": {reason: "", limits: func(l *fetch.Limits) { l.ExtractedBytes = 9000 }, want: fetch.LimitExceeded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wrap := tc.wrap
			if wrap == nil {
				wrap = func(h http.Handler) http.Handler { return h }
			}
			s := newServed(t, wrap)
			tree := noise(6, 10_000)
			tree["second"] = tree["noise"]
			a := s.put(t, tree)
			if tc.edit != nil {
				tc.edit(&a)
			}
			dir := t.TempDir()
			_, err := newLoader(t, dir, s.server.URL, func(o *loader.Options) {
				if tc.limits != nil {
					tc.limits(&o.Limits)
				}
			}).Load(t.Context(), owner, a)
			wantReason(t, err, tc.want)
			if left := temporary(t, dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			// Only what is too much once unpacked has been downloaded.
			if cached := archives(t, dir); len(cached) > 0 && name != "too many" && name != "unpacked size" {
				t.Errorf("cached in spite of it: %v", cached)
			}
		})
	}
}

// flipped serves what the handler serves with one bit changed.
func flipped(h http.Handler) http.Handler {
	return rewritten(h, func(w http.ResponseWriter, body []byte) {
		body[len(body)/2] ^= 1
		_, _ = w.Write(body)
	})
}

// cut ends the connection in the middle.
func cut(h http.Handler) http.Handler {
	return rewritten(h, func(w http.ResponseWriter, body []byte) {
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	})
}

// chunked does not say a length.
func chunked(h http.Handler) http.Handler {
	return rewritten(h, func(w http.ResponseWriter, body []byte) {
		w.Header().Del("Content-Length")
		w.(http.Flusher).Flush() //nolint:errcheck // a test
		_, _ = w.Write(body)
	})
}

func rewritten(h http.Handler, send func(http.ResponseWriter, []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		send(w, answer.Body.Bytes())
	})
}

func TestF12LoadOnAFullDisk(t *testing.T) {
	s := newServed(t)
	a := s.put(t, noise(8, 100_000))
	dir := t.TempDir()
	armed := atomic.Bool{}
	loader := newLoader(t, dir, s.server.URL, func(o *loader.Options) {
		o.FS = hookFS{before: func(op string) error {
			if armed.Load() && op == "write" {
				return syscall.ENOSPC
			}
			return nil
		}}
	})
	armed.Store(true)
	_, err := loader.Load(t.Context(), owner, a)
	var failure *volume.StorageError
	if !errors.As(err, &failure) || !failure.Full() || fetch.ReasonOf(err) != "" {
		t.Errorf("a full disk is reported as %v", err)
	}
	if left := temporary(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	armed.Store(false)
	if _, err := loader.Load(t.Context(), owner, a); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
