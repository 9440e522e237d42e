// SPDX-License-Identifier: Apache-2.0

// Package fair shares a controller's workers between namespaces, so that slow objects
// of one namespace do not block those of others.
package fair

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Turns limits how many objects of a namespace are reconciled at once. Others hold no
// worker while they wait, and get their turn in the order of their arrival. The limit
// is by namespace, since a namespace is what a tenant gets.
type Turns struct {
	most int

	mu      sync.Mutex
	busy    map[string]int                                          // turns taken or promised, by namespace
	waiting map[string][]types.NamespacedName                       // in their order
	known   map[types.NamespacedName]bool                           // waits (false) or was promised a turn (true)
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request] // of the controller; nil until it starts
}

// NewTurns returns turns for most objects of a namespace at once; 0 means any number.
func NewTurns(most int) *Turns {
	return &Turns{most: most, busy: map[string]int{}, waiting: map[string][]types.NamespacedName{}, known: map[types.NamespacedName]bool{}}
}

// Share is the number of turns of a namespace for a number of workers: wanted, but at most half of the workers, so that
// another namespace never waits for all of them. 0 wanted means any number.
func Share(wanted, workers int) int {
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
	if t.most <= 0 {
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
	case t.busy[key.Namespace] < t.most:
		t.busy[key.Namespace]++
	default:
		t.known[key] = false
		t.waiting[key.Namespace] = append(t.waiting[key.Namespace], key)
		return nil, false
	}
	return func() { t.pass(key.Namespace) }, true
}

// Drop releases the turn that an object waits for, or was promised, and does not need
// any more.
func (t *Turns) Drop(key types.NamespacedName) {
	t.mu.Lock()
	promised, known := t.known[key]
	delete(t.known, key)
	if keys := slices.DeleteFunc(t.waiting[key.Namespace], func(k types.NamespacedName) bool { return k == key }); len(keys) > 0 {
		t.waiting[key.Namespace] = keys
	} else {
		delete(t.waiting, key.Namespace)
	}
	t.mu.Unlock()
	if known && promised {
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

// pass gives a turn to the object that waits longest.
func (t *Turns) pass(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := t.waiting[namespace]
	if len(keys) == 0 {
		if t.busy[namespace]--; t.busy[namespace] == 0 {
			delete(t.busy, namespace)
		}
		return
	}
	next := keys[0]
	if t.waiting[namespace] = keys[1:]; len(keys) == 1 {
		delete(t.waiting, namespace)
	}
	t.known[next] = true
	if t.queue != nil {
		t.queue.Add(reconcile.Request{NamespacedName: next})
	}
}
