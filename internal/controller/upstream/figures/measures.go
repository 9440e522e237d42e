// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/controller/upstream/failure"
	"github.com/satchel-dev/satchel/internal/sourcefetch"
)

// Storing is measured beside the operations of upstreams. They are the values of the label operation.
const Storing sourcefetch.Operation = "store"

// Measures observes the time spent on upstreams and storage, and how often no download was
// needed. Its labels are kinds of sources and reasons, both from fixed lists, so tenants
// cannot increase the number of series. Nil observes nothing.
type Measures struct {
	durations *prometheus.HistogramVec
	unchanged *prometheus.CounterVec
	moved     *prometheus.CounterVec
	untold    prometheus.Counter
	uploads   *prometheus.CounterVec
	uploaded  prometheus.Counter
}

// NewMeasures registers the metrics of sources at the registry.
func NewMeasures(registry prometheus.Registerer) (*Measures, error) {
	m := &Measures{
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "satchel_source_duration_seconds",
			Help:    "How long resolving, fetching (verifying and unpacking included), verifying and storing took.",
			Buckets: prometheus.ExponentialBuckets(0.004, 4, 8),
		}, []string{"operation", "kind", "result"}),
		unchanged: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "satchel_source_cache_hits_total",
			Help: "How many times a source resolved to stored content, so that no download was needed.",
		}, []string{"kind"}),
		moved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "satchel_source_cache_misses_total",
			Help: "How many times a source resolved to content that had to be downloaded.",
		}, []string{"kind"}),
		untold: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "satchel_source_events_suppressed_total",
			Help: "How many changes were shown in a status only, without an event and a log line, because there were too many.",
		}),
		uploads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "satchel_source_uploads_total",
			Help: "How many requests for uploads were answered, and how they ended.",
		}, []string{"result"}),
		uploaded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "satchel_source_uploaded_bytes_total",
			Help: "How many bytes of content were uploaded, as they came over the wire.",
		}),
	}
	return m, errors.Join(registry.Register(m.durations), registry.Register(m.unchanged), registry.Register(m.moved), registry.Register(m.untold),
		registry.Register(m.uploads), registry.Register(m.uploaded))
}

// Suppress counts a change without an event.
func (m *Measures) Suppress() {
	if m != nil {
		m.untold.Inc()
	}
}

// Upload counts a request for an upload, and its bytes.
func (m *Measures) Upload(ended upload.Reason, came int64) {
	if m != nil {
		m.uploads.WithLabelValues(string(ended)).Inc()
		m.uploaded.Add(float64(came))
	}
}

// Observe records the duration and result of an operation: ok, or the reason in the
// conditions.
func (m *Measures) Observe(operation sourcefetch.Operation, kind string, took time.Duration, err error) {
	if m == nil {
		return
	}
	result := "ok"
	if err != nil {
		result = failure.Of(err).Reason
	}
	m.durations.WithLabelValues(string(operation), kind, result).Observe(took.Seconds())
}

// Resolved counts whether a source has to be downloaded.
func (m *Measures) Resolved(kind string, moved bool) {
	switch {
	case m == nil:
	case moved:
		m.moved.WithLabelValues(kind).Inc()
	default:
		m.unchanged.WithLabelValues(kind).Inc()
	}
}
