// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/satchel-dev/satchel/internal/apply/tenant/connection"
)

// transport is a function that does requests.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// silent never answers.
func silent(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func good(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// ask sends a request with the time limit of one, and returns how long it took.
func ask(t *testing.T, b *connection.Breaker, query string) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster/api"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	response, err := b.RoundTrip(request)
	if err == nil {
		_, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
	}
	return time.Since(began), err
}

// A server that answered before has the whole time limit of a request; one that failed has 5 seconds to begin an answer. A
// large answer may take longer to read.
func TestS7ProbesOfFailedServersAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := transport(silent)
		probes := semaphore.NewWeighted(connection.NamespaceProbes)
		b := &connection.Breaker{Host: "cluster", Now: time.Now, Next: transport(func(r *http.Request) (*http.Response, error) { return next(r) }), Probes: probes}
		if took, err := ask(t, b, ""); err == nil || took != 30*time.Second {
			t.Errorf("the first request ended after %s with %v", took, err)
		}
		time.Sleep(time.Minute)
		var unreachable *connection.UnreachableError
		if took, err := ask(t, b, ""); !errors.As(err, &unreachable) || took != 5*time.Second || !strings.Contains(err.Error(), "no answer in time") {
			t.Errorf("the probe ended after %s with %v", took, err)
		}
		time.Sleep(time.Minute)
		next = func(*http.Request) (*http.Response, error) {
			time.Sleep(4 * time.Second)
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(slowly{strings.NewReader("{}")})}, nil
		}
		if took, err := ask(t, b, ""); err != nil || took < 8*time.Second || b.Open() {
			t.Errorf("the probe with a slow answer ended after %s with %v", took, err)
		}
		if !probes.TryAcquire(connection.NamespaceProbes) {
			t.Error("a probe has ended and holds its place")
		}
	})
}

// slowly takes a while for each read.
type slowly struct{ io.Reader }

func (s slowly) Read(p []byte) (int, error) {
	time.Sleep(3 * time.Second)
	return s.Reader.Read(p)
}

// However a probe ends, it releases its place: answered, refused, cancelled by its caller, as a watch, or cut in its answer.
func TestProbesReleaseTheirPlaces(t *testing.T) {
	cut := func(*http.Request) (*http.Response, error) {
		return &http.Response{Body: io.NopCloser(io.MultiReader(strings.NewReader("{"), broken{}))}, nil
	}
	for name, c := range map[string]struct {
		next   transport
		query  string
		closed bool
	}{
		"answer":  {good, "", true},
		"refusal": {func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }, "", false},
		"silence": {silent, "", false},
		"watch":   {good, "?watch=true", true},
		"cut":     {cut, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				next := transport(silent)
				probes := semaphore.NewWeighted(1)
				b := &connection.Breaker{Host: "cluster", Now: time.Now, Next: transport(func(r *http.Request) (*http.Response, error) { return next(r) }), Probes: probes}
				_, _ = ask(t, b, "")
				for range 3 { // it gets its turn again, too
					time.Sleep(2 * time.Minute)
					next = c.next
					asked := false
					next = func(r *http.Request) (*http.Response, error) { asked = true; return c.next(r) }
					if _, err := ask(t, b, c.query); !asked {
						t.Fatalf("nothing was sent: %v", err)
					}
					if b.Open() == c.closed {
						t.Errorf("open: %v", b.Open())
					}
					if !probes.TryAcquire(1) {
						t.Fatal("the place is not released")
					}
					probes.Release(1)
				}
			})
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A caller that cancels its probe says nothing about the server: the next one may try at once.
func TestCancelledProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		b := &connection.Breaker{Host: "cluster", Now: time.Now, Probes: semaphore.NewWeighted(1), Next: transport(func(r *http.Request) (*http.Response, error) {
			sent++
			return silent(r)
		})}
		_, _ = ask(t, b, "")
		time.Sleep(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.RoundTrip(request); !errors.Is(err, context.Canceled) { //nolint:bodyclose // there is none
			t.Errorf("got %v", err)
		}
		if _, _ = ask(t, b, ""); sent != 3 {
			t.Errorf("%d requests were sent, want 3", sent)
		}
	})
}
