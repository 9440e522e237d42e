// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// firstRetry is the pause after one failure; each further one doubles it.
const firstRetry = time.Second

// Backoff counts failures by object. The zero value is ready for use.
type Backoff struct {
	mu        sync.Mutex
	failures  map[types.NamespacedName]int
	conflicts map[types.NamespacedName]int
	doubted   map[types.NamespacedName]string // the version that a cache must have before it is used again
}

// Failed counts one more failure and returns the pause before the next attempt:
// one second, doubled with each failure in a row, at most the given longest
// pause, less up to a tenth so that objects that failed together spread out.
func (b *Backoff) Failed(key types.NamespacedName, longest time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == nil {
		b.failures = map[types.NamespacedName]int{}
	}
	pause := min(firstRetry<<min(b.failures[key], 20), longest)
	b.failures[key]++
	delete(b.conflicts, key)
	return spread(pause)
}

// Succeeded forgets the failures of an object.
func (b *Backoff) Succeeded(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failures, key)
	delete(b.conflicts, key)
}

// Forget drops everything about an object that is gone.
func (b *Backoff) Forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failures, key)
	delete(b.conflicts, key)
	delete(b.doubted, key)
}

// Count is how often the object failed in a row.
func (b *Backoff) Count(key types.NamespacedName) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures[key]
}

// spread subtracts up to a tenth, so that retries of objects spread out.
func spread(pause time.Duration) time.Duration {
	return pause - rand.N(pause/10+1)
}

const (
	// firstConflict is long enough for a cache with a running watch to see the change
	// that caused a conflict.
	firstConflict = 200 * time.Millisecond
	// longestConflict is about how long a watch takes to reconnect.
	longestConflict = 5 * time.Second
)

// Conflicted is the pause after a decision on an outdated copy of an object: a fifth of a
// second, doubled with each one in a row, at most five seconds. The next Read uses the
// API server.
func (b *Backoff) Conflicted(key types.NamespacedName) time.Duration {
	b.doubt(key, unknownVersion)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conflicts == nil {
		b.conflicts = map[types.NamespacedName]int{}
	}
	pause := min(firstConflict<<min(b.conflicts[key], 20), longestConflict)
	b.conflicts[key]++
	return pause
}

// Conflict is the result of a reconcile with a failed write: it is repeated soon after
// a conflict, ends if the object is gone, and fails otherwise. Since the write may have
// succeeded although its answer was lost, the next Read uses the API server.
func (b *Backoff) Conflict(key types.NamespacedName, err error) (ctrl.Result, error) {
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: b.Conflicted(key)}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	}
	b.doubt(key, unknownVersion)
	return ctrl.Result{}, err
}

// IntervalPause is the pause until the next regular check, less up to a tenth.
func IntervalPause(interval time.Duration) time.Duration { return spread(interval) }

// RequestedPause is the pause that an upstream asked for, plus up to a tenth, so that retries
// with the same pause spread out. It is at most an hour.
func RequestedPause(pause time.Duration) time.Duration {
	pause = min(pause, time.Hour)
	return pause + rand.N(pause/10+1)
}
