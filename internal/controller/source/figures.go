// SPDX-License-Identifier: Apache-2.0

package source

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

// figures of the store, read when they are collected. None has a label of a
// tenant's choice, so that their number does not grow with what tenants do.
var figures = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(artifact.Stats) int64
}{
	{describeFigure("satchel_artifacts_stored", "How many artifacts are in storage."),
		prometheus.GaugeValue, func(s artifact.Stats) int64 { return s.Artifacts }},
	{describeFigure("satchel_artifact_stored_bytes", "How many bytes the artifacts in storage take."),
		prometheus.GaugeValue, func(s artifact.Stats) int64 { return s.Bytes }},
	{describeFigure("satchel_artifact_namespaces", "How many namespaces have artifacts in storage."),
		prometheus.GaugeValue, func(s artifact.Stats) int64 { return s.Namespaces }},
	{describeFigure("satchel_artifact_quota_refusals_total", "How many artifacts were refused because their namespace had stored what it may."),
		prometheus.CounterValue, func(s artifact.Stats) int64 { return s.Refused }},
	{describeFigure("satchel_artifact_requests_total", "How many requests the artifact server answered."),
		prometheus.CounterValue, func(s artifact.Stats) int64 { return s.Requests }},
	{describeFigure("satchel_artifact_requests_refused_total", "How many of them were refused for want of a token, or of the right to read."),
		prometheus.CounterValue, func(s artifact.Stats) int64 { return s.Denied }},
	{describeFigure("satchel_artifact_served_bytes_total", "How many bytes of artifacts were sent to consumers."),
		prometheus.CounterValue, func(s artifact.Stats) int64 { return s.Served }},
	{describeFigure("satchel_artifact_damaged_total", "How many times a stored artifact was found to be gone or to have other bytes than were stored."),
		prometheus.CounterValue, func(s artifact.Stats) int64 { return s.Damaged }},
}

func describeFigure(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, nil, nil)
}

// storeFigures collects the figures of a store.
type storeFigures struct{ store *artifact.Store }

// Describe implements prometheus.Collector.
func (storeFigures) Describe(to chan<- *prometheus.Desc) {
	for _, f := range figures {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c storeFigures) Collect(to chan<- prometheus.Metric) {
	stats := c.store.Stats()
	for _, f := range figures {
		to <- prometheus.MustNewConstMetric(f.desc, f.kind, float64(f.of(stats)))
	}
}
