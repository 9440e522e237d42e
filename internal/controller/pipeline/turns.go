// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Turns limits how many objects of a namespace are reconciled at once, and how many of all
// namespaces. Others hold no worker while they wait, and get their turn in the order of their
// arrival. There is a limit by namespace, since a namespace is what a tenant gets.
type Turns struct {
	most int // of one namespace; 0 is no limit
	// places is the number of turns of all namespaces, and limit that from which on a namespace that
	// has one gets no other; 0 is no limit.
	places, limit int

	mu      sync.Mutex
	busy    map[string]int                                          // turns taken or promised, by namespace
	total   int                                                     // of them
	arrived uint64                                                  // how many objects have waited so far
	waiting map[string][]waiter                                     // in their order
	known   map[types.NamespacedName]bool                           // waits (false) or was promised a turn (true)
	awaited map[types.NamespacedName]chan struct{}                  // closed when the turn is promised; see TakeWithin
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request] // of the controller; nil until it starts
}

// NewTurns returns turns for most objects of a namespace at once; 0 means any number.
func NewTurns(most int) *Turns {
	return &Turns{most: most, busy: map[string]int{}, waiting: map[string][]waiter{}, known: map[types.NamespacedName]bool{}, awaited: map[types.NamespacedName]chan struct{}{}}
}

// waiter is an object that waits.
type waiter struct {
	key   types.NamespacedName
	place uint64 // in the order of arrival
}

// Within limits the turns of all namespaces to so many places. Unless one namespace may have any number, a quarter of them is
// reserved for namespaces without a turn, however many other namespaces want several. 0 places means no limit.
func (t *Turns) Within(places int) *Turns {
	t.places, t.limit = places, 0
	if places > 0 && t.most > 0 {
		t.limit = max(1, places-max(1, places/4))
	}
	return t
}

// TurnShare is the number of turns of a namespace for a number of workers: wanted, but at most half of the workers, so that
// another namespace never waits for all of them. 0 wanted means any number.
func TurnShare(wanted, workers int) int {
	if wanted <= 0 {
		return 0
	}
	return min(wanted, max(1, workers/2))
}

// Source connects the turns to the queue of a controller, which has to watch it: a
// waiting object is queued again when its turn has come.
func (t *Turns) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.queue = queue
		return nil
	})
}

// Take takes a turn for an object, which done releases. Without one the reconcile has
// to end; the object is queued again when its turn has come.
func (t *Turns) Take(key types.NamespacedName) (done func(), ok bool) {
	if t.most <= 0 && t.places <= 0 {
		return func() {}, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	promised, known := t.known[key]
	switch {
	case promised:
		delete(t.known, key)
	case known: // it waits already
		return nil, false
	case len(t.waiting[key.Namespace]) == 0 && t.may(key.Namespace):
		t.busy[key.Namespace]++
		t.total++
	default:
		t.known[key] = false
		t.arrived++
		t.waiting[key.Namespace] = append(t.waiting[key.Namespace], waiter{key, t.arrived})
		return nil, false
	}
	return func() { t.pass(key.Namespace) }, true
}

// TakeWithin is Take, but waits for a turn for some time before the reconcile has to end.
func (t *Turns) TakeWithin(ctx context.Context, key types.NamespacedName, patience time.Duration) (done func(), ok bool) {
	if done, ok = t.Take(key); ok || patience <= 0 {
		return done, ok
	}
	promised := make(chan struct{})
	t.mu.Lock()
	if t.known[key] {
		close(promised)
	} else {
		t.awaited[key] = promised
	}
	t.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-promised:
	case <-timer.C:
	case <-ctx.Done():
	}
	t.mu.Lock()
	delete(t.awaited, key)
	t.mu.Unlock()
	return t.Take(key)
}

// Drop releases the turn that an object waits for, or was promised, and does not need
// any more.
func (t *Turns) Drop(key types.NamespacedName) {
	t.mu.Lock()
	promised, known := t.known[key]
	if !known {
		t.mu.Unlock()
		return
	}
	delete(t.known, key)
	delete(t.awaited, key)
	if keys := slices.DeleteFunc(t.waiting[key.Namespace], func(w waiter) bool { return w.key == key }); len(keys) > 0 {
		t.waiting[key.Namespace] = keys
	} else {
		delete(t.waiting, key.Namespace)
	}
	t.mu.Unlock()
	if promised {
		t.pass(key.Namespace)
	}
}

// Waiting is how many objects wait for their turn.
func (t *Turns) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	count := 0
	for _, keys := range t.waiting {
		count += len(keys)
	}
	return count
}

// may tells whether a namespace may take another turn.
func (t *Turns) may(namespace string) bool {
	busy := t.busy[namespace]
	switch {
	case t.places > 0 && t.total >= t.places:
		return false
	case busy == 0:
		return true
	}
	return (t.most <= 0 || busy < t.most) && (t.limit == 0 || t.total < t.limit)
}

// pass ends a turn, and promises turns to the objects that wait longest, of namespaces that may take one.
func (t *Turns) pass(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total--
	if t.busy[namespace]--; t.busy[namespace] == 0 {
		delete(t.busy, namespace)
	}
	for next, found := t.longest(); found; next, found = t.longest() {
		keys := t.waiting[next]
		if t.waiting[next] = keys[1:]; len(keys) == 1 {
			delete(t.waiting, next)
		}
		t.busy[next]++
		t.total++
		t.known[keys[0].key] = true
		if promised, here := t.awaited[keys[0].key]; here {
			delete(t.awaited, keys[0].key)
			close(promised)
		} else if t.queue != nil {
			t.queue.Add(reconcile.Request{NamespacedName: keys[0].key})
		}
	}
}

// longest is the namespace of the object that waits longest, among those that may take a turn.
func (t *Turns) longest() (namespace string, found bool) {
	for candidate, keys := range t.waiting {
		if t.may(candidate) && (!found || keys[0].place < t.waiting[namespace][0].place) {
			namespace, found = candidate, true
		}
	}
	return namespace, found
}
