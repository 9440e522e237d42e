// SPDX-License-Identifier: Apache-2.0

package listed_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/satchel-dev/satchel/internal/apply/tenant/listed"
)

// reader is a collection that counts how often it is listed.
type reader struct {
	names  []string
	partly bool
	err    error
	takes  time.Duration

	mu    sync.Mutex
	lists int
}

func (r *reader) read(ctx context.Context) ([]string, bool, error) {
	r.mu.Lock()
	r.lists++
	r.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, false, ctx.Err()
	case <-time.After(r.takes):
	}
	return r.names, !r.partly, r.err
}

var key = listed.Key{Namespace: "shop"}

// A list is requested when another deployment asked within a second, and used for a second.
func TestFind(t *testing.T) {
	type step struct {
		after time.Duration
		asker string
		lists int  // so far
		found bool // a list
	}
	cases := map[string]struct {
		reader *reader
		steps  []step
	}{
		"one deployment never lists": {
			reader: &reader{},
			steps:  []step{{asker: "a"}, {asker: "a"}, {after: time.Second, asker: "a"}},
		},
		"clients without a deployment do not share": {
			reader: &reader{},
			steps:  []step{{asker: "a"}, {}, {}},
		},
		"the second one lists, and those of the same second use it": {
			reader: &reader{},
			steps:  []step{{asker: "a"}, {asker: "b", lists: 1, found: true}, {after: listed.Age - time.Millisecond, asker: "c", lists: 1, found: true}, {asker: "a", lists: 1, found: true}},
		},
		"a steady stream lists once a second": {
			reader: &reader{},
			steps: []step{
				{asker: "a"}, {asker: "b", lists: 1, found: true}, {after: 600 * time.Millisecond, asker: "c", lists: 1, found: true},
				{after: 600 * time.Millisecond, asker: "d", lists: 2, found: true}, {after: 600 * time.Millisecond, asker: "e", lists: 2, found: true},
			},
		},
		"two that are far apart do not list": {
			reader: &reader{},
			steps:  []step{{asker: "a"}, {after: listed.Age + 1, asker: "b"}, {after: listed.Age + 1, asker: "c"}},
		},
		"a collection with more objects is left alone for a while": {
			reader: &reader{partly: true},
			steps: []step{
				{asker: "a"}, {asker: "b", lists: 1}, {asker: "c", lists: 1}, {after: listed.Pause - time.Second, asker: "d", lists: 1},
				{after: time.Second, asker: "e", lists: 2},
			},
		},
		"so is one that cannot be listed": {
			reader: &reader{err: errors.New("forbidden")},
			steps:  []step{{asker: "a"}, {asker: "b", lists: 1}, {asker: "c", lists: 1}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				collections := listed.New(time.Now)
				for i, s := range c.steps {
					time.Sleep(s.after)
					names := collections.Find(t.Context(), key, s.asker, c.reader.read)
					if found := names != nil; found != s.found || c.reader.lists != s.lists {
						t.Errorf("step %d: found a list: %t after %d lists, want %t after %d", i, found, c.reader.lists, s.found, s.lists)
					}
				}
			})
		})
	}
}

// Deployments that ask at once wait for one list. Another collection has another one.
func TestFindAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collections, r := listed.New(time.Now), &reader{names: []string{"taken"}, takes: 300 * time.Millisecond}
		collections.Find(t.Context(), key, "first", r.read)
		var wait sync.WaitGroup
		for i := range 20 {
			wait.Go(func() {
				names := collections.Find(t.Context(), key, fmt.Sprint(i), r.read)
				if names == nil || !names.Lack("free") || names.Lack("taken") {
					t.Errorf("deployment %d: got %v", i, names)
				}
			})
		}
		wait.Wait()
		other := &reader{}
		if names := collections.Find(t.Context(), listed.Key{Namespace: "other"}, "x", other.read); names != nil || r.lists != 1 || other.lists != 0 {
			t.Errorf("%d lists, want 1; another collection: %v, %d lists", r.lists, names, other.lists)
		}
	})
}

// No deployment waits longer for the list of another one than it could use it, and none depends on the context of another one.
func TestFindWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collections, slow := listed.New(time.Now), &reader{takes: time.Hour}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		collections.Find(ctx, key, "a", slow.read)
		go collections.Find(ctx, key, "b", slow.read)
		synctest.Wait()
		began := time.Now()
		if names := collections.Find(t.Context(), key, "c", slow.read); names != nil || time.Since(began) > listed.Age || slow.lists != 1 {
			t.Errorf("got %v after %s and %d lists", names, time.Since(began), slow.lists)
		}
		<-ctx.Done()
		synctest.Wait()
		r := &reader{}
		collections.Find(t.Context(), key, "d", r.read)
		if names := collections.Find(t.Context(), key, "e", r.read); names == nil || r.lists != 1 {
			t.Errorf("after a list that was cancelled: %v, %d lists, want a list", names, r.lists)
		}
	})
}

// What the account creates is on the list, also on one that is under way; a list that proved to be outdated is dropped, and an old
// one takes no memory.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collections, r := listed.New(time.Now), &reader{takes: 100 * time.Millisecond}
		collections.Created(key, "early") // nothing is listed
		collections.Find(t.Context(), key, "a", r.read)
		go collections.Find(t.Context(), key, "b", r.read)
		synctest.Wait()
		collections.Created(key, "during")
		names := collections.Find(t.Context(), key, "c", r.read)
		collections.Created(key, "after")
		if names == nil || names.Lack("during") || names.Lack("after") || !names.Lack("free") {
			t.Fatalf("got %+v", names)
		}
		collections.Forget(key)
		if again := collections.Find(t.Context(), key, "d", r.read); again != nil || r.lists != 1 {
			t.Errorf("after Forget: got %v, %d lists", again, r.lists)
		}
		time.Sleep(listed.Age)
		synctest.Wait()
		if names.Lack("free") {
			t.Error("an old list still tells what is free")
		}
	})
}
