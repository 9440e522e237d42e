// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// The places are a hard limit, also for a namespace without a turn, and for one that may have any number.
func TestPlacesAreNeverExceeded(t *testing.T) {
	for _, most := range []int{0, 1, 4} {
		t.Run(fmt.Sprint("most ", most), func(t *testing.T) {
			const places, namespaces, each = 8, 20, 6
			turns := pipeline.NewTurns(most).Within(places)
			queue := newQueue(t, turns)
			var held []func()
			for namespace := range namespaces {
				for i := range each {
					if done, ok := turns.Take(key(fmt.Sprint("n", namespace), i)); ok {
						held = append(held, done)
					}
				}
			}
			if len(held) != places {
				t.Fatalf("%d turns were given for %d places", len(held), places)
			}
			served := 0
			for ; len(held) > 0; served++ {
				held[0]()
				held = held[1:]
				for queue.Len() > 0 {
					done, ok := turns.Take(next(t, queue))
					if !ok {
						t.Fatal("a promised turn was not kept")
					}
					held = append(held, done)
				}
				if len(held) > places {
					t.Fatalf("%d turns at once for %d places", len(held), places)
				}
			}
			if served != namespaces*each || turns.Waiting() != 0 {
				t.Errorf("%d of %d were served, %d wait", served, namespaces*each, turns.Waiting())
			}
		})
	}
}

// eventually waits until a condition is met.
func eventually(t *testing.T, met func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return met(), nil })
	if err != nil {
		t.Fatal("waited in vain")
	}
}

// kind is one of two kinds of objects that share the workers of a controller, each with places of its own.
type kind struct {
	turns       *pipeline.Turns
	mu          sync.Mutex
	busy        map[string]int
	now, peak   int
	namespace   int // peak of one namespace
	blocked     chan struct{}
	served      atomic.Int64
	withoutTurn atomic.Int64
}

func newKind(places, perNamespace int) *kind {
	return &kind{turns: pipeline.NewTurns(perNamespace).Within(places), busy: map[string]int{}, blocked: make(chan struct{})}
}

func (k *kind) reconcile(request reconcile.Request) {
	done, ok := k.turns.Take(request.NamespacedName)
	if !ok {
		k.withoutTurn.Add(1)
		return
	}
	defer done()
	k.mu.Lock()
	k.now++
	k.busy[request.Namespace]++
	k.peak = max(k.peak, k.now)
	k.namespace = max(k.namespace, k.busy[request.Namespace])
	k.mu.Unlock()
	<-k.blocked
	k.mu.Lock()
	k.now--
	k.busy[request.Namespace]--
	k.mu.Unlock()
	k.served.Add(1)
}

// 500 remote objects, with servers that do not answer, hold 32 of 64 places, and none of the 8 local ones: 100 local objects are all
// served meanwhile. Nothing is queued again in a loop: an object without a turn is looked at once, and then when it has one.
func TestBlockedObjectsOfOneKindLeaveTheOther(t *testing.T) {
	const local, remote = 8, 64
	locals, remotes := newKind(local, 4), newKind(remote, remote/2)
	close(locals.blocked)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	for _, k := range []*kind{locals, remotes} {
		if err := k.turns.Source().Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
	}
	var workers sync.WaitGroup
	for range local + remote {
		workers.Go(func() {
			for request, ended := queue.Get(); !ended; request, ended = queue.Get() {
				if request.Name[0] == 'r' {
					remotes.reconcile(request)
				} else {
					locals.reconcile(request)
				}
				queue.Done(request)
			}
		})
	}
	add := func(prefix string, count int) {
		for i := range count {
			request := reconcile.Request{NamespacedName: key("fleet", i)}
			request.Name = prefix + request.Name
			queue.Add(request)
		}
	}
	add("remote-", 500)
	add("local-", 100)
	eventually(t, func() bool { return locals.served.Load() == 100 && remotes.turns.Waiting() == 500-remote/2 })
	remotes.mu.Lock()
	t.Logf("blocked: %d of %d remote places; local: %d at once", remotes.now, remote, locals.peak)
	if remotes.now != remote/2 || locals.peak > local/2 {
		t.Errorf("%d remote and %d local at once", remotes.now, locals.peak)
	}
	remotes.mu.Unlock()
	close(remotes.blocked)
	eventually(t, func() bool { return remotes.served.Load() == 500 })
	queue.ShutDown()
	workers.Wait()
	if remotes.peak > remote || remotes.namespace > remote/2 || remotes.withoutTurn.Load() > 500 || locals.withoutTurn.Load() > 100 {
		t.Errorf("remote: %d at once, %d of one namespace, %d looks without a turn; local: %d looks", remotes.peak, remotes.namespace, remotes.withoutTurn.Load(), locals.withoutTurn.Load())
	}
}
