// SPDX-License-Identifier: Apache-2.0

// Package running tracks running reconciles, so that one that is stuck is detected: by a metric, and by the health check,
// which restarts the process.
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

// Reconciles tracks running reconciles. A nil one tracks nothing.
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

// grace is how long a reconcile may exceed its time before the process counts as unhealthy.
const grace = time.Minute

// New returns a tracker without running reconciles.
func New() *Reconciles {
	return &Reconciles{now: time.Now, began: map[*types.NamespacedName]run{}}
}

// Begin records the start of a reconcile with its longest duration; the returned function records its end.
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

// oldest is the longest running reconcile.
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

// overdue are the reconciles that have exceeded their time by the given duration.
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

// Check is a healthz.Checker: it fails once a reconcile has exceeded its time by a minute.
func (r *Reconciles) Check(*http.Request) error {
	for key, since := range r.overdue(grace) {
		return fmt.Errorf("the reconcile of %s has run for %s, which is longer than its limit", key, since.Round(time.Second))
	}
	return nil
}

// Register registers the metric at the registry.
func (r *Reconciles) Register(registry prometheus.Registerer) error {
	overdue := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "satchel_overdue_reconciles",
		Help: "How many reconciles have run for longer than their limit.",
	}, func() float64 { return float64(len(r.overdue(0))) })
	oldest := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "satchel_oldest_reconcile_seconds",
		Help: "How long the longest running reconcile has run.",
	}, func() float64 {
		_, since := r.oldest()
		return since.Seconds()
	})
	return errors.Join(registry.Register(overdue), registry.Register(oldest))
}
