// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics observes the duration of reconciles, by object as Flux does, and that of
// steps, by kind, phase, step and result. A nil one observes nothing.
type Metrics struct{ reconciles, steps *prometheus.HistogramVec }

// NewMetrics registers gotk_reconcile_duration_seconds and satchel_step_duration_seconds
// at the registry.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		reconciles: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "gotk_reconcile_duration_seconds",
			Help:    "How long a reconcile took.",
			Buckets: prometheus.ExponentialBucketsRange(10e-3, 1800, 10),
		}, []string{"kind", "name", "namespace"}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "satchel_step_duration_seconds",
			Help:    "How long a step of a reconcile took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"kind", "phase", "step", "result"}),
	}
	return m, errors.Join(registry.Register(m.reconciles), registry.Register(m.steps))
}

// Reconciled observes a reconcile that began at the given time and ends now.
func (m *Metrics) Reconciled(kind string, key types.NamespacedName, began time.Time) {
	if m != nil {
		m.reconciles.WithLabelValues(kind, key.Name, key.Namespace).Observe(time.Since(began).Seconds())
	}
}

// Forget drops the metrics of an object that is gone.
func (m *Metrics) Forget(kind string, key types.NamespacedName) {
	if m != nil {
		m.reconciles.DeleteLabelValues(kind, key.Name, key.Namespace)
	}
}

// Phases of an object's life, as the label of Metrics names them.
const (
	// PhaseReconciling applies the desired state of an object.
	PhaseReconciling = "reconcile"
	// PhaseCorrectingDrift keeps the last applied revision while a newer one fails.
	PhaseCorrectingDrift = "care"
	// PhaseRemoving deletes what an object installed.
	PhaseRemoving = "remove"
)

// Observer observes the steps of one kind of object in one phase.
func (m *Metrics) Observer(kind, phase string) Observer {
	return func(step string, took time.Duration, err error) {
		if m == nil {
			return
		}
		result := "ok"
		if err != nil {
			result = "error"
		}
		m.steps.WithLabelValues(kind, phase, step, result).Observe(took.Seconds())
	}
}
