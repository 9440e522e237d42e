// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/fetch"
	archive "github.com/satchel-dev/satchel/internal/fetch/http"
	"github.com/satchel-dev/satchel/internal/fetch/image"
)

// Values of the label operation.
const (
	resolving = "resolve"
	fetching  = "fetch"
	verifying = "verify"
	storing   = "store"
)

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

// suppress counts a change without an event.
func (m *Measures) suppress() {
	if m != nil {
		m.untold.Inc()
	}
}

// upload counts a request for an upload, and its bytes.
func (m *Measures) upload(ended upload.Reason, came int64) {
	if m != nil {
		m.uploads.WithLabelValues(string(ended)).Inc()
		m.uploaded.Add(float64(came))
	}
}

// observe records the duration and result of an operation: ok, or the reason in the
// conditions.
func (m *Measures) observe(operation, kind string, took time.Duration, err error) {
	if m == nil {
		return
	}
	result := "ok"
	if err != nil {
		result = judge(err).reason
	}
	m.durations.WithLabelValues(operation, kind, result).Observe(took.Seconds())
}

// resolved counts whether a source has to be downloaded.
func (m *Measures) resolved(kind string, moved bool) {
	switch {
	case m == nil:
	case moved:
		m.moved.WithLabelValues(kind).Inc()
	default:
		m.unchanged.WithLabelValues(kind).Inc()
	}
}

// kindOfAll is the kind of all sources of a spec, or "several" if they differ.
func kindOfAll(sources []v1alpha1.Source) string {
	kind := sources[0].Kind()
	for _, source := range sources[1:] {
		if source.Kind() != kind {
			return "several"
		}
	}
	return kind
}

// measured observes a fetcher.
type measured struct {
	fetch.Fetcher
	kind string
	to   *Measures
}

// Resolve implements fetch.Fetcher.
func (f measured) Resolve(ctx context.Context) (r fetch.Resolved, err error) {
	began := time.Now()
	defer func() { f.to.observe(resolving, f.kind, time.Since(began), err) }()
	return f.Fetcher.Resolve(ctx)
}

// Fetch implements fetch.Fetcher.
func (f measured) Fetch(ctx context.Context, r fetch.Resolved, tree *fetch.Tree) (done fetch.Resolved, err error) {
	began := time.Now()
	defer func() { f.to.observe(fetching, f.kind, time.Since(began), err) }()
	return f.Fetcher.Fetch(ctx, r, tree)
}

// measuredImages observes a verifier of images.
type measuredImages struct {
	image.Verifier
	to *Measures
}

// Verify implements image.Verifier.
func (v measuredImages) Verify(ctx context.Context, s image.Subject) (by string, err error) {
	began := time.Now()
	defer func() { v.to.observe(verifying, "image", time.Since(began), err) }()
	return v.Verifier.Verify(ctx, s)
}

// measuredArchives observes a verifier of archives.
type measuredArchives struct {
	archive.Verifier
	to *Measures
}

// VerifyBlob implements archive.Verifier.
func (v measuredArchives) VerifyBlob(ctx context.Context, digest fetch.Digest, signature []byte) (by string, err error) {
	began := time.Now()
	defer func() { v.to.observe(verifying, "http", time.Since(began), err) }()
	return v.Verifier.VerifyBlob(ctx, digest, signature)
}
