// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// lookEvery is how often Secrets are looked at while a source fails for want of
// what they hold. The upstream is not asked again for that.
const lookEvery = 5 * time.Second

// Looking holds a worker and asks the API server, so that a namespace may have few at it
// at once; the others of it come back after busyPause.
const (
	mostLooks = 3
	busyPause = time.Second
)

// waiting remembers the sources that are left alone until a Secret is another one: those that fail for want of what is in
// Secrets, and those whose trust is in Secrets. The zero value is ready for use.
type waiting struct {
	mu    sync.Mutex
	kept  map[types.NamespacedName]wait
	looks map[string]int // under way, by namespace
}

// wait is one such source.
type wait struct {
	seen       seen
	generation int64
	requested  string
	until      time.Time // when it is tried again in any case
	every      time.Duration
}

// keep leaves a source alone until the given pause is over, and returns the pause until
// the Secrets are looked at, which is done every so often.
func (w *waiting) keep(object *v1alpha1.BundleSource, s seen, now time.Time, pause, every time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept == nil {
		w.kept = map[types.NamespacedName]wait{}
	}
	w.kept[client.ObjectKeyFromObject(object)] = wait{
		seen: s.clone(), generation: object.Generation, requested: requested(object), until: now.Add(pause), every: every,
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

// pause is how long a source that failed has still to be left alone; zero when it
// may be tried: the time is over, somebody changed it or asks for it, or one of the
// Secrets is another one by now.
func (w *waiting) pause(ctx context.Context, reader client.Reader, object *v1alpha1.BundleSource, now time.Time) time.Duration {
	w.mu.Lock()
	kept, known := w.kept[client.ObjectKeyFromObject(object)]
	w.mu.Unlock()
	left := kept.until.Sub(now)
	if !known || left <= 0 || kept.generation != object.Generation || kept.requested != requested(object) || len(object.Status.Conditions) == 0 {
		return 0
	}
	end, ok := w.look(object.Namespace)
	if !ok {
		return min(left, busyPause)
	}
	defer end()
	if kept.seen.changed(ctx, reader, object.Namespace) {
		return 0
	}
	return min(left, kept.every)
}

// look begins to look at the Secrets of a source, unless enough of its namespace do so.
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

func requested(object *v1alpha1.BundleSource) string {
	at, _ := meta.ReconcileAnnotationValue(object.GetAnnotations())
	return at
}

// mendable tells whether another content of a Secret may help against a failure.
func mendable(err error) bool {
	switch fetch.ReasonOf(err) {
	case fetch.Unauthorized, fetch.Unverified, fetch.Refused, fetch.NotFound: // servers hide what is private
		return true
	case fetch.Unreachable:
		return fetch.OfCertificate(err)
	default:
		return false
	}
}
