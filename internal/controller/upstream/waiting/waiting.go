// SPDX-License-Identifier: Apache-2.0

// Package waiting remembers objects that wait for a change of a Secret, so that their upstreams are not asked meanwhile.
package waiting

import (
	"context"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
)

// LookEvery is how often Secrets are checked while a source fails because of their
// contents. The upstream is not asked meanwhile.
const LookEvery = 5 * time.Second

// A check holds a worker and sends requests to the API server, so a namespace may run
// few at once; its other objects retry after busyPause.
const (
	mostLooks = 3
	busyPause = time.Second
)

// Waiting remembers the objects that wait for a change of a Secret: those that fail because of the contents of Secrets,
// and those with their trust in Secrets. The zero value is ready for use.
type Waiting struct {
	mu    sync.Mutex
	kept  map[types.NamespacedName]wait
	looks map[string]int // running checks, by namespace
}

// Object is what waits.
type Object interface {
	client.Object
	conditions.Getter
}

// wait is one such object.
type wait struct {
	seen       credentials.Seen
	generation int64
	requested  string
	until      time.Time // when it is reconciled again in any case
	every      time.Duration
}

// Keep makes an object wait until the given pause is over, and returns the pause until
// the next check of its Secrets.
func (w *Waiting) Keep(object client.Object, s credentials.Seen, now time.Time, pause, every time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept == nil {
		w.kept = map[types.NamespacedName]wait{}
	}
	w.kept[client.ObjectKeyFromObject(object)] = wait{
		seen: s.Clone(), generation: object.GetGeneration(), requested: pipeline.Requested(object), until: now.Add(pause), every: every,
	}
	return min(pause, every)
}

// Forget ends the waiting of an object.
func (w *Waiting) Forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.kept, key)
}

// Clear forgets all failures.
func (w *Waiting) Clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = nil
}

// Pause is how long an object still has to wait; zero when it may be reconciled: the
// time is over, it was edited, a reconcile was requested, or one of the Secrets
// changed.
func (w *Waiting) Pause(ctx context.Context, reader client.Reader, object Object, now time.Time) time.Duration {
	w.mu.Lock()
	kept, known := w.kept[client.ObjectKeyFromObject(object)]
	w.mu.Unlock()
	left := kept.until.Sub(now)
	if !known || left <= 0 || kept.generation != object.GetGeneration() || kept.requested != pipeline.Requested(object) || len(object.GetConditions()) == 0 {
		return 0
	}
	end, ok := w.look(object.GetNamespace())
	if !ok {
		return min(left, busyPause)
	}
	defer end()
	if kept.seen.Changed(ctx, reader, object.GetNamespace()) {
		return 0
	}
	return min(left, kept.every)
}

// look starts a check of the Secrets of a source, unless its namespace already runs mostLooks.
func (w *Waiting) look(namespace string) (end func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looks[namespace] >= mostLooks {
		return nil, false
	}
	if w.looks == nil {
		w.looks = map[string]int{}
	}
	w.looks[namespace]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.looks[namespace]--; w.looks[namespace] == 0 {
			delete(w.looks, namespace)
		}
	}, true
}

// FixableBySecret tells whether another content of a Secret may fix a failure.
func FixableBySecret(err error) bool {
	switch fetch.ReasonOf(err) {
	case fetch.Unauthorized, fetch.Unverified, fetch.Refused, fetch.NotFound: // servers hide what is private
		return true
	case fetch.Unreachable:
		return fetch.OfCertificate(err)
	default:
		return false
	}
}
