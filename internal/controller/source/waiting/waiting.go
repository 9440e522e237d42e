// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
)

// lookEvery is how often Secrets are checked while a source fails because of their
// contents. The upstream is not asked meanwhile.
const lookEvery = 5 * time.Second

// A check holds a worker and sends requests to the API server, so a namespace may run
// few at once; its other sources retry after busyPause.
const (
	mostLooks = 3
	busyPause = time.Second
)

// waiting remembers the sources that wait for a change of a Secret: those that fail because of the contents of Secrets,
// and those with their trust in Secrets. The zero value is ready for use.
type waiting struct {
	mu    sync.Mutex
	kept  map[types.NamespacedName]wait
	looks map[string]int // running checks, by namespace
}

// wait is one such source.
type wait struct {
	seen       credentials.Seen
	generation int64
	requested  string
	until      time.Time // when it is reconciled again in any case
	every      time.Duration
}

// keep makes a source wait until the given pause is over, and returns the pause until
// the next check of its Secrets.
func (w *waiting) keep(object *v1alpha1.BundleSource, s credentials.Seen, now time.Time, pause, every time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept == nil {
		w.kept = map[types.NamespacedName]wait{}
	}
	w.kept[client.ObjectKeyFromObject(object)] = wait{
		seen: s.Clone(), generation: object.Generation, requested: pipeline.Requested(object), until: now.Add(pause), every: every,
	}
	return min(pause, every)
}

func (w *waiting) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.kept, key)
}

// clear forgets all failures.
func (w *waiting) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = nil
}

// pause is how long a source still has to wait; zero when it may be reconciled: the
// time is over, it was edited, a reconcile was requested, or one of the Secrets
// changed.
func (w *waiting) pause(ctx context.Context, reader client.Reader, object *v1alpha1.BundleSource, now time.Time) time.Duration {
	w.mu.Lock()
	kept, known := w.kept[client.ObjectKeyFromObject(object)]
	w.mu.Unlock()
	left := kept.until.Sub(now)
	if !known || left <= 0 || kept.generation != object.Generation || kept.requested != pipeline.Requested(object) || len(object.Status.Conditions) == 0 {
		return 0
	}
	end, ok := w.look(object.Namespace)
	if !ok {
		return min(left, busyPause)
	}
	defer end()
	if kept.seen.Changed(ctx, reader, object.Namespace) {
		return 0
	}
	return min(left, kept.every)
}

// look starts a check of the Secrets of a source, unless its namespace already runs mostLooks.
func (w *waiting) look(namespace string) (end func(), ok bool) {
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

// fixableBySecret tells whether another content of a Secret may fix a failure.
func fixableBySecret(err error) bool {
	switch fetch.ReasonOf(err) {
	case fetch.Unauthorized, fetch.Unverified, fetch.Refused, fetch.NotFound: // servers hide what is private
		return true
	case fetch.Unreachable:
		return fetch.OfCertificate(err)
	default:
		return false
	}
}
