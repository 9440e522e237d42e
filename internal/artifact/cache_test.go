// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestF9LoadFromTheCache(t *testing.T) {
	s := newServed(t)
	a := s.put(t, noise(5, 10_000))
	dir := t.TempDir()
	load := func() error {
		content, err := newLoader(t, dir, s.server.URL).Load(t.Context(), owner, a)
		if err != nil {
			return err
		}
		return content.Close()
	}
	if err := errors.Join(load(), load()); err != nil || s.requests.Load() != 1 {
		t.Fatalf("%d requests were made: %v", s.requests.Load(), err)
	}
	cached, err := filepath.Glob(filepath.Join(dir, "*/*/*/*.tar.gz"))
	if err != nil || len(cached) != 1 {
		t.Fatalf("cached is %v: %v", cached, err)
	}
	for name, tc := range damages() {
		if strings.HasPrefix(name, "digest") || strings.HasPrefix(name, "storage") || strings.HasPrefix(name, "folder of") {
			continue // there is no such thing in a cache
		}
		before := s.requests.Load()
		if err := tc.do(cached[0]); err != nil {
			t.Fatal(err)
		}
		if err := load(); err != nil || s.requests.Load() != before+1 {
			t.Errorf("%s: %d requests were made: %v", name, s.requests.Load()-before, err)
		}
	}
	s.server.Close()
	if err := load(); err != nil {
		t.Errorf("with the server down: %v", err)
	}
	if err := flipBit(cached[0]); err != nil {
		t.Fatal(err)
	}
	wantReason(t, load(), fetch.Unreachable)
}

// small is a cache with room for three artifacts of 10 kB, five of which there are.
type small struct {
	t      *testing.T
	dir    string
	served *served
	now    *clock
	loader *loader.Loader
	all    []meta.Artifact
}

func newSmall(t *testing.T) *small {
	s := &small{t: t, dir: t.TempDir(), served: newServed(t), now: &clock{now: time.Unix(1e9, 0)}}
	for seed := range uint64(5) {
		s.all = append(s.all, s.served.put(t, noise(20+seed, 10_000)))
	}
	s.restart()
	return s
}

// restart opens the cache as the next process does.
func (s *small) restart() {
	s.loader = newLoader(s.t, s.dir, s.served.server.URL, func(o *loader.Options) {
		o.CacheBytes, o.Now = 35_000, s.now.Now
	})
}

func (s *small) load(indices ...int) {
	s.t.Helper()
	for _, i := range indices {
		s.now.add(time.Second)
		content, err := s.loader.Load(s.t.Context(), owner, s.all[i])
		if err == nil {
			err = content.Close()
		}
		s.must(err)
	}
}

func (s *small) keep(key string, indices ...int) {
	s.t.Helper()
	var kept []loader.Kept
	for _, i := range indices {
		kept = append(kept, loader.Kept{Owner: owner, Digest: s.all[i].Digest})
	}
	s.must(s.loader.Keep(key, kept...))
}

func (s *small) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *small) expect(step string, indices ...int) {
	s.t.Helper()
	var want []string
	for _, i := range indices {
		want = append(want, s.all[i].Digest[7:]+".tar.gz")
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, archives(s.t, s.dir)); diff != "" {
		s.t.Errorf("%s: %s", step, diff)
	}
}

func TestCacheEviction(t *testing.T) {
	s := newSmall(t)
	s.load(0, 1, 2, 0, 3)
	s.expect("1 was used least recently", 0, 2, 3)
	s.keep("a", 2, 2)
	s.load(4)
	s.expect("2 is pinned, 0 goes", 2, 3, 4)
	s.restart()
	s.load(0)
	s.expect("pins and order hold over a restart", 2, 4, 0)
	s.keep("a", 0, 2, 4)
	s.load(1)
	s.expect("a cache full of pins refuses nothing, 2 was used least recently", 0, 1, 4)
	s.load(2)
	s.expect("what is pinned goes after what is not", 0, 2, 4)
	s.keep("a")
	s.load(1)
	s.expect("with no pin 4 was used least recently", 0, 1, 2)
}

// TestCachePinsAreOfDeployments has two deployments of one source, and one that is gone.
func TestCachePinsAreOfDeployments(t *testing.T) {
	s := newSmall(t)
	s.load(0, 1, 2)
	s.keep("a", 0)
	s.keep("b", 1)
	s.load(3)
	s.expect("b's pin did not lift a's", 0, 1, 3)
	s.keep("b")
	s.load(4)
	s.expect("lifting b's leaves a's", 0, 3, 4)
	s.keep("lifted", 0, 3)
	s.must(s.loader.Keep("lifted")) // its source is not known any more
	s.keep("gone", 3)
	s.restart()
	s.must(s.loader.KeepOnly(map[string]bool{"a": true, "new": true}))
	s.load(1)
	s.expect("the pin of a deployment that is gone does not count", 0, 1, 4)
	s.restart()
	s.load(2)
	s.expect("nor after the next start; 4 goes", 0, 1, 2)
	left, err := filepath.Glob(filepath.Join(s.dir, ".pins", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "a" {
		t.Errorf("pins are %v: %v", left, err)
	}
}

func TestKeepRefusesWhatIsNoName(t *testing.T) {
	s := newSmall(t)
	for _, key := range []string{"", "../x", "a/b", ".", "A b"} {
		if err := s.loader.Keep(key); err == nil {
			t.Errorf("key %q was accepted", key)
		}
	}
	if err := s.loader.Keep("a", loader.Kept{Owner: artifact.Owner{Kind: ".."}, Digest: s.all[0].Digest}); err == nil {
		t.Error("an owner of no name was accepted")
	}
	if err := s.loader.Keep("a", loader.Kept{Owner: owner, Digest: "sha256:x"}); err == nil {
		t.Error("a digest that is none was accepted")
	}
}

func TestCacheRefusesOnlyWhatIsLargerThanItself(t *testing.T) {
	s := newSmall(t)
	large := s.served.put(t, noise(30, 50_000))
	s.load(0, 1, 2)
	_, err := s.loader.Load(t.Context(), owner, large)
	var failure *volume.StorageError
	if !errors.As(err, &failure) || !failure.Full() || !strings.Contains(err.Error(), "raise the size of the cache") {
		t.Errorf("got %v", err)
	}
	s.expect("nothing was evicted for it", 0, 1, 2)
}

// TestCacheWaitsForRoom fills the cache with what is being fetched.
func TestCacheWaitsForRoom(t *testing.T) {
	var slow atomic.Bool
	halfway, proceed := make(chan struct{}), make(chan struct{})
	served := newServed(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !slow.CompareAndSwap(true, false) {
				next.ServeHTTP(w, r)
				return
			}
			rewritten(next, func(w http.ResponseWriter, body []byte) {
				_, _ = w.Write(body[:1000])
				w.(http.Flusher).Flush() //nolint:errcheck // a test
				close(halfway)
				<-proceed
				_, _ = w.Write(body[1000:])
			}).ServeHTTP(w, r)
		})
	})
	first, second := served.put(t, noise(20, 10_000)), served.put(t, noise(21, 10_000))
	dir := t.TempDir()
	loader := newLoader(t, dir, served.server.URL, func(o *loader.Options) { o.CacheBytes = 15_000 })
	load := func(ctx context.Context, a meta.Artifact) error {
		content, err := loader.Load(ctx, owner, a)
		if err != nil {
			return err
		}
		return content.Close()
	}
	slow.Store(true)
	done := make(chan error, 2)
	go func() { done <- load(t.Context(), first) }()
	<-halfway
	waitForDraft(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := load(ctx, second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with no room and no time: %v", err)
	}
	go func() { done <- load(t.Context(), second) }()
	close(proceed)
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
}

// waitForDraft waits until an archive is being written, for which the room is taken by then: that a server has answered
// does not say that the loader has read the answer.
func waitForDraft(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		drafts, err := filepath.Glob(filepath.Join(dir, "*/*/*/.tmp-*"))
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no archive is being written: %v", err)
		}
		if len(drafts) > 0 {
			return
		}
	}
}
