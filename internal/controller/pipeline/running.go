// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Running tracks running reconciles, and evaluations of expressions in them. A nil one tracks nothing.
type Running struct {
	now func() time.Time

	mu    sync.Mutex
	began map[*types.NamespacedName]runningReconcile
}

// runningReconcile is one reconcile.
type runningReconcile struct {
	began   time.Time
	longest time.Duration
}

// overdueGrace is how long a reconcile may exceed its time before the process counts as unhealthy.
const overdueGrace = time.Minute

// NewRunning returns a tracker without running reconciles.
func NewRunning() *Running {
	return &Running{now: time.Now, began: map[*types.NamespacedName]runningReconcile{}}
}

// Begin records the start of a reconcile with its longest duration; the returned function records its end.
func (r *Running) Begin(key types.NamespacedName, longest time.Duration) (end func()) {
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began[&key] = runningReconcile{began: r.now(), longest: longest}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.began, &key)
	}
}

// oldest is the longest running reconcile.
func (r *Running) oldest() (key types.NamespacedName, since time.Duration) {
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
func (r *Running) overdue(by time.Duration) map[types.NamespacedName]time.Duration {
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
func (r *Running) Check(*http.Request) error {
	for key, since := range r.overdue(overdueGrace) {
		return fmt.Errorf("the reconcile of %s has run for %s, which is longer than the limit of a reconcile, or of an expression in one", key, since.Round(time.Second))
	}
	return nil
}

// Register registers the metric at the registry.
func (r *Running) Register(registry prometheus.Registerer) error {
	overdue := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "satchel_overdue_reconciles",
		Help: "How many reconciles, and evaluations of expressions in them, have run for longer than their limit.",
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
