// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// paced is a body that delays its chunks, on a clock of its own.
type paced struct {
	now    time.Time
	chunk  int
	takes  time.Duration
	chunks int
}

func (p *paced) Read(b []byte) (int, error) {
	if p.chunks == 0 {
		return 0, io.EOF
	}
	p.chunks--
	p.now = p.now.Add(p.takes)
	return min(p.chunk, len(b)), nil
}

func (p *paced) Close() error { return nil }

func TestM18PaceOfABody(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   paced
		pause  time.Duration // of the reader, after each chunk
		want   fetch.Reason
	}{
		"Fast":       {"the normal case", paced{chunk: 32 << 10, takes: time.Millisecond, chunks: 1000}, 0, ""},
		"AtLimit":    {"a slow line", paced{chunk: 10 << 10, takes: 10 * time.Second, chunks: 100}, 0, ""},
		"Crawl":      {"a byte less a second", paced{chunk: 10<<10 - 10, takes: 10 * time.Second, chunks: 100}, 0, fetch.Timeout},
		"Trickle":    {"a byte now and then, which is no idle line", paced{chunk: 1, takes: 29 * time.Second, chunks: 100}, 0, fetch.Timeout},
		"Short":      {"an answer that is complete before it is judged", paced{chunk: 1, takes: 29 * time.Second, chunks: 2}, 0, ""},
		"SlowReader": {"the disk is slow, not the server", paced{chunk: 100, takes: time.Millisecond, chunks: 100}, time.Minute, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			g := &guard{idle: idleTimeout, period: pacePeriod, now: func() time.Time { return tc.body.now }}
			body := g.guarded(ctx, cancel, &tc.body)
			var err error
			for buffer := make([]byte, 32<<10); err == nil; tc.body.now = tc.body.now.Add(tc.pause) {
				_, err = body.Read(buffer)
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if fetch.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil && (!strings.Contains(err.Error(), "the server is too slow: it sent") || !errors.Is(err, context.Cause(ctx))) {
				t.Errorf("%s: %v, and the transfer ended with %v", tc.reason, err, context.Cause(ctx))
			}
			if err := body.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestM18PaceIsJudgedOverWindows has a server that was fast once.
func TestM18PaceIsJudgedOverWindows(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	source := &paced{chunk: 1 << 20, takes: 30 * time.Second, chunks: 100}
	body := (&guard{idle: idleTimeout, period: pacePeriod, now: func() time.Time { return source.now }}).guarded(ctx, cancel, source)
	buffer := make([]byte, 1<<20)
	for i := range 4 {
		if i == 2 {
			source.chunk = 1
		}
		_, err := body.Read(buffer)
		if want := map[bool]fetch.Reason{true: fetch.Timeout}[i == 3]; fetch.ReasonOf(err) != want {
			t.Errorf("read %d: %v", i, err)
		}
	}
}

func TestM18ATricklingServerIsLeft(t *testing.T) {
	left := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush() //nolint:errcheck // a test
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}))
	t.Cleanup(server.Close)
	client := local().HTTPClient(fetch.DefaultLimits())
	client.Transport.(*guard).period = 100 * time.Millisecond
	if _, err := get(t, client, server.URL); fetch.ReasonOf(err) != fetch.Timeout || !strings.Contains(err.Error(), "too slow") {
		t.Errorf("got %v", err)
	}
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Error("the connection is still open")
	}
}
