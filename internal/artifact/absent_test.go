// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// TestF24AbsentIsAskedForOnceInFiveSeconds: the server is asked for a missing artifact once in five seconds, for any
// number of loads, unless the artifact was advertised again.
func TestF24AbsentIsAskedForOnceInFiveSeconds(t *testing.T) {
	there := false
	s := newServed(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !there {
				http.NotFound(w, r)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	a, other := s.put(t, noise(4, 1000)), s.put(t, noise(5, 1000))
	now := time.Now()
	loader := newLoader(t, t.TempDir(), s.server.URL, func(o *loader.Options) { o.Now = func() time.Time { return now } })
	asked := func(want int32) {
		t.Helper()
		if got := s.requests.Load(); got != want {
			t.Errorf("asked %d times, want %d", got, want)
		}
	}
	for range 12 { // of six seconds
		_, err := loader.Load(t.Context(), owner, a)
		wantReason(t, err, fetch.NotFound)
		now = now.Add(500 * time.Millisecond)
	}
	asked(2)
	_, err := loader.Load(t.Context(), owner, other)
	wantReason(t, err, fetch.NotFound)
	asked(3)
	there = true
	_, err = loader.Load(t.Context(), owner, a)
	wantReason(t, err, fetch.NotFound)
	asked(3)
	again := a
	again.LastUpdateTime = metav1.NewTime(a.LastUpdateTime.Add(time.Second))
	content, err := loader.Load(t.Context(), owner, again)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close() //nolint:errcheck // a test
	asked(4)
	now = now.Add(5 * time.Second)
	late, err := loader.Load(t.Context(), owner, other)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close() //nolint:errcheck // a test
	asked(5)
}
