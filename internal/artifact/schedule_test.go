// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
)

// TestF13AdvertisedArtifactsExist runs Put, GET, Verify and Collect of several owners in random order at the same time:
// what is advertised can be had at any time. The clock only moves on while no owner is between Put and its status.
func TestF13AdvertisedArtifactsExist(t *testing.T) {
	publications := 25
	if full() {
		publications = 500
	}
	now := &clock{now: time.Now()}
	s := &schedule{store: openStore(t, t.TempDir(), func(o *storage.Options) { o.Now = now.Now })}
	var publishers, others sync.WaitGroup
	done := make(chan struct{})
	var all []*advertised
	for n := range 4 {
		status := &advertised{owner: artifact.Owner{Kind: "bundlesource", Namespace: "team", Name: fmt.Sprintf("app-%d", n)}}
		all = append(all, status)
		publishers.Go(func() { s.publish(t, status, rand.New(rand.NewPCG(uint64(n), 2)), publications) })
		others.Go(func() { s.consume(t, status, done) })
		others.Go(func() { s.collect(t, status, done) })
	}
	others.Go(func() { s.advance(now, done) })
	publishers.Wait()
	close(done)
	others.Wait()
	for _, status := range all {
		if status.removed == 0 {
			t.Errorf("nothing of %s was ever collected", status.owner)
		}
	}
}

// schedule is what the actors share.
type schedule struct {
	store *storage.Store
	// window is read-locked by operations during which the clock must not advance.
	window sync.RWMutex
}

// advertised is what a status says: the present artifact and one that a deployment still runs.
type advertised struct {
	owner artifact.Owner
	// mu is held in reading while something depends on the status staying as it is.
	mu  sync.RWMutex
	now []meta.Artifact
	// removed counts what was collected.
	removed int
}

func (s *schedule) publish(t *testing.T, status *advertised, random *rand.Rand, n int) {
	for range n {
		s.window.RLock()
		a, err := s.store.Put(t.Context(), status.owner, "main", noise(uint64(random.IntN(12)), 20_000)) // some return
		if err != nil {
			t.Error(err)
		}
		status.mu.Lock()
		status.now = append([]meta.Artifact{a}, status.now[:min(len(status.now), 1)]...)
		status.mu.Unlock()
		s.window.RUnlock()
	}
}

func (s *schedule) consume(t *testing.T, status *advertised, done <-chan struct{}) {
	for !closed(done) {
		status.mu.RLock()
		for _, a := range status.now {
			if answer := get(s.store, a); answer.Code != http.StatusOK || digestOf(answer.Body.Bytes()) != a.Digest {
				t.Errorf("an advertised artifact is answered with %d", answer.Code)
			}
			if err := s.store.Verify(t.Context(), status.owner, a); err != nil {
				t.Error(err)
			}
		}
		status.mu.RUnlock()
	}
}

// collect keeps what it saw advertised when it began, as a reconcile does; what came since is young.
func (s *schedule) collect(t *testing.T, status *advertised, done <-chan struct{}) {
	for !closed(done) {
		s.window.RLock()
		kept := map[string]bool{}
		status.mu.RLock()
		for _, a := range status.now {
			kept[a.Digest] = true
		}
		status.mu.RUnlock()
		keep := func(digest string) bool { return kept[digest] }
		removed, err := s.store.Collect(t.Context(), status.owner, keep, 0, 30*time.Second)
		if err != nil {
			t.Error(err)
		}
		status.removed += len(removed)
		s.window.RUnlock()
	}
}

func (s *schedule) advance(now *clock, done <-chan struct{}) {
	for !closed(done) {
		s.window.Lock()
		now.add(time.Minute)
		s.window.Unlock()
		time.Sleep(time.Millisecond)
	}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
