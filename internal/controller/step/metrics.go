// SPDX-License-Identifier: Apache-2.0

package step

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics observes the duration of steps, by kind, phase, step and result.
type Metrics struct{ durations *prometheus.HistogramVec }

// NewMetrics registers satchel_step_duration_seconds at the registry.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "satchel_step_duration_seconds",
		Help:    "How long a step of a reconcile took.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
	}, []string{"kind", "phase", "step", "result"})
	if err := registry.Register(durations); err != nil {
		return nil, err
	}
	return &Metrics{durations: durations}, nil
}

// Phases of an object's life, as the label of Metrics names them.
const (
	// Reconciling brings an object up to date.
	Reconciling = "reconcile"
	// Caring keeps the last good state while a newer one fails.
	Caring = "care"
	// Renewing renews what would end while an object is suspended.
	Renewing = "renew"
	// Removing takes away what an object brought.
	Removing = "remove"
)

// Observer observes the steps of one kind of object in one phase. It may be
// called on nil Metrics, and observes nothing then.
func (m *Metrics) Observer(kind, phase string) Observer {
	return func(step string, took time.Duration, err error) {
		if m == nil {
			return
		}
		result := "ok"
		if err != nil {
			result = "error"
		}
		m.durations.WithLabelValues(kind, phase, step, result).Observe(took.Seconds())
	}
}
