// SPDX-License-Identifier: Apache-2.0

// Package running knows which reconciles run and since when, so that one that never ends is seen: by a metric, and by the
// health check, which has the process restarted.
package running

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Reconciles are those that run now. A nil one knows nothing.
type Reconciles struct {
	now func() time.Time

	mu    sync.Mutex
	began map[*types.NamespacedName]run
}

// run is one reconcile.
type run struct {
	began   time.Time
	longest time.Duration
}

// grace is how long a reconcile may need to end after its time is over, before the process counts as unhealthy.
const grace = time.Minute

// New returns reconciles of which none runs.
func New() *Reconciles {
	return &Reconciles{now: time.Now, began: map[*types.NamespacedName]run{}}
}

// Begin notes that the reconcile of an object begins, which may take so long; the function that it returns, that it ends.
func (r *Reconciles) Begin(key types.NamespacedName, longest time.Duration) (end func()) {
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began[&key] = run{began: r.now(), longest: longest}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.began, &key)
	}
}

// oldest is the reconcile that has run longest.
func (r *Reconciles) oldest() (key types.NamespacedName, since time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for of, run := range r.began {
		if took := now.Sub(run.began); took > since {
			key, since = *of, took
		}
	}
	return key, since
}

// overdue are the reconciles that have run for so much longer than they may.
func (r *Reconciles) overdue(by time.Duration) map[types.NamespacedName]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, found := r.now(), map[types.NamespacedName]time.Duration{}
	for of, run := range r.began {
		if took := now.Sub(run.began); took > run.longest+by {
			found[*of] = took
		}
	}
	return found
}

// Check is a healthz.Checker: it fails once a reconcile takes longer than it may, and a minute to end.
func (r *Reconciles) Check(*http.Request) error {
	for key, since := range r.overdue(grace) {
		return fmt.Errorf("the reconcile of %s has run for %s, which is longer than it may", key, since.Round(time.Second))
	}
	return nil
}

// Register registers the metric at the registry.
func (r *Reconciles) Register(registry prometheus.Registerer) error {
	overdue := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "satchel_overdue_reconciles",
		Help: "How many reconciles have run for longer than they may.",
	}, func() float64 { return float64(len(r.overdue(0))) })
	oldest := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "satchel_oldest_reconcile_seconds",
		Help: "How long the reconcile that began first of those that run now has run.",
	}, func() float64 {
		_, since := r.oldest()
		return since.Seconds()
	})
	return errors.Join(registry.Register(overdue), registry.Register(oldest))
}
