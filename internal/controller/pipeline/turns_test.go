// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

func newQueue(t *testing.T, turns *pipeline.Turns) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := turns.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return queue
}

func key(namespace string, number int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(number)}
}

func next(t *testing.T, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) types.NamespacedName {
	t.Helper()
	if queue.Len() == 0 {
		t.Fatal("no object was called")
	}
	request, _ := queue.Get()
	queue.Done(request)
	return request.NamespacedName
}

func TestTurnsComeInOrder(t *testing.T) {
	turns := pipeline.NewTurns(2)
	queue := newQueue(t, turns)
	var done []func()
	for i := range 5 {
		end, ok := turns.Take(key("a", i))
		if ok != (i < 2) {
			t.Fatalf("object %d: %t", i, ok)
		}
		if ok {
			done = append(done, end)
		}
	}
	if _, ok := turns.Take(key("b", 0)); !ok {
		t.Error("another namespace has to wait")
	}
	if _, ok := turns.Take(key("a", 3)); ok || turns.Waiting() != 3 {
		t.Errorf("one that waits came twice: %d wait", turns.Waiting())
	}
	for i := 2; i < 5; i++ {
		done[0]()
		if got := next(t, queue); got != key("a", i) {
			t.Fatalf("called %s, want %d", got, i)
		}
		if _, ok := turns.Take(key("a", 9)); ok {
			t.Fatal("another object took the turn")
		}
		end, ok := turns.Take(key("a", i))
		if !ok {
			t.Fatalf("the turn of %d was not kept", i)
		}
		done[0] = end
	}
}

func TestNoBound(t *testing.T) {
	turns := pipeline.NewTurns(0)
	for i := range 100 {
		if _, ok := turns.Take(key("a", i)); !ok {
			t.Fatal("had to wait")
		}
	}
}

// TestAllGetATurn: under any schedule all are served, never more at once than allowed.
func TestAllGetATurn(t *testing.T) {
	const most, workers, objects = 3, 16, 400
	turns := pipeline.NewTurns(most)
	queue := newQueue(t, turns)
	var mu sync.Mutex
	busy, served := map[string]int{}, map[types.NamespacedName]bool{}
	var all sync.WaitGroup
	all.Add(objects)
	work := func() {
		for {
			request, ended := queue.Get()
			if ended {
				return
			}
			if done, ok := turns.Take(request.NamespacedName); ok {
				mu.Lock()
				busy[request.Namespace]++
				if busy[request.Namespace] > most {
					t.Errorf("%d at once", busy[request.Namespace])
				}
				mu.Unlock()
				for range rand.N(1000) { // some work
					_ = fmt.Sprint(request)
				}
				mu.Lock()
				busy[request.Namespace]--
				if !served[request.NamespacedName] {
					served[request.NamespacedName] = true
					all.Done()
				}
				mu.Unlock()
				done()
			}
			queue.Done(request)
		}
	}
	for range workers {
		go work()
	}
	for i := range objects {
		queue.Add(reconcile.Request{NamespacedName: key([]string{"a", "a", "a", "b"}[i%4], i)})
	}
	all.Wait()
	if turns.Waiting() != 0 {
		t.Errorf("%d still wait", turns.Waiting())
	}
}

// An object that leaves, before or after being promised a turn, does not take the turn
// of another one.
func TestLeaving(t *testing.T) {
	turns := pipeline.NewTurns(1)
	queue := newQueue(t, turns)
	end, _ := turns.Take(key("a", 0))
	for i := 1; i <= 3; i++ {
		if _, ok := turns.Take(key("a", i)); ok {
			t.Fatal("two at once")
		}
	}
	turns.Drop(key("a", 2)) // waits
	turns.Drop(key("a", 9)) // was never here
	end()
	if got := next(t, queue); got != key("a", 1) {
		t.Fatalf("called %s, want 1", got)
	}
	turns.Drop(key("a", 1)) // was promised the turn
	if got := next(t, queue); got != key("a", 3) {
		t.Fatalf("called %s, want 3", got)
	}
	end, ok := turns.Take(key("a", 3))
	if !ok {
		t.Fatal("the turn of 3 was not kept")
	}
	end()
	if _, ok := turns.Take(key("a", 4)); !ok || turns.Waiting() != 0 {
		t.Errorf("a turn is lost: %d wait", turns.Waiting())
	}
}

func TestShareLeavesHalfOfTheWorkers(t *testing.T) {
	for _, tc := range []struct{ wanted, workers, want int }{{0, 8, 0}, {6, 8, 4}, {4, 8, 4}, {2, 8, 2}, {5, 1, 1}, {5, 3, 1}, {100, 20, 10}} {
		if got := pipeline.TurnShare(tc.wanted, tc.workers); got != tc.want {
			t.Errorf("%d of %d workers: %d, want %d", tc.wanted, tc.workers, got, tc.want)
		}
	}
}

// Three namespaces that want all workers leave a quarter of them to a fourth one.
func TestWorkersAreReserved(t *testing.T) {
	const workers = 8
	turns := pipeline.NewTurns(workers / 2).Within(workers)
	queue := newQueue(t, turns)
	var done []func()
	for i := range 4 {
		for _, namespace := range []string{"a", "b", "c"} {
			if end, ok := turns.Take(key(namespace, i)); ok {
				done = append(done, end)
			}
		}
	}
	if len(done) != workers*3/4 {
		t.Errorf("three namespaces have %d of %d workers", len(done), workers)
	}
	end, ok := turns.Take(key("d", 0))
	if !ok {
		t.Fatal("a namespace without a turn has to wait")
	}
	end()
	if queue.Len() != 0 {
		t.Error("the reserved turn was given to a namespace that has some")
	}
	done[0]()
	if got := next(t, queue); got != key("a", 2) {
		t.Errorf("%s is next, and a/2 waits longest", got)
	}
	for _, end := range done[1:] {
		end()
	}
	served := len(done) + 1
	for ; queue.Len() > 0; served++ {
		end, ok := turns.Take(next(t, queue))
		if !ok {
			t.Fatal("a promised turn was not kept")
		}
		end()
	}
	if served != 12 || turns.Waiting() != 0 {
		t.Errorf("%d of 12 were served, %d wait", served, turns.Waiting())
	}
}
