// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
)

// ofStore are the metrics of the store and its server, read when they are collected. Tenants do not
// control any label value, so the number of series is bounded.
var ofStore = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(storage.Stats, server.Stats) int64
}{
	{describeFigure("satchel_artifacts_stored", "How many artifacts are in storage."),
		prometheus.GaugeValue, func(s storage.Stats, _ server.Stats) int64 { return s.Artifacts }},
	{describeFigure("satchel_artifact_stored_bytes", "How many bytes the artifacts in storage take."),
		prometheus.GaugeValue, func(s storage.Stats, _ server.Stats) int64 { return s.Bytes }},
	{describeFigure("satchel_artifact_namespaces", "How many namespaces have artifacts in storage."),
		prometheus.GaugeValue, func(s storage.Stats, _ server.Stats) int64 { return s.Namespaces }},
	{describeFigure("satchel_artifact_quota_refusals_total", "How many artifacts were refused because their namespace had used up its quota."),
		prometheus.CounterValue, func(s storage.Stats, _ server.Stats) int64 { return s.Refused }},
	{describeFigure("satchel_artifact_requests_total", "How many requests the artifact server answered."),
		prometheus.CounterValue, func(_ storage.Stats, h server.Stats) int64 { return h.Requests }},
	{describeFigure("satchel_artifact_requests_refused_total", "How many of them were refused for lack of a token or of read permission."),
		prometheus.CounterValue, func(_ storage.Stats, h server.Stats) int64 { return h.Denied }},
	{describeFigure("satchel_artifact_served_bytes_total", "How many bytes of artifacts were sent to consumers."),
		prometheus.CounterValue, func(_ storage.Stats, h server.Stats) int64 { return h.Served }},
	{describeFigure("satchel_artifact_damaged_total", "How many times a stored artifact was found missing or damaged."),
		prometheus.CounterValue, func(s storage.Stats, _ server.Stats) int64 { return s.Damaged }},
}

func describeFigure(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, nil, nil)
}

// StoreCollector collects the metrics of a store and of the server of its artifacts.
type StoreCollector struct {
	Store  *storage.Store
	Server *server.Handler
}

// Describe implements prometheus.Collector.
func (StoreCollector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range ofStore {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c StoreCollector) Collect(to chan<- prometheus.Metric) {
	stored, served := c.Store.Stats(), c.Server.Stats()
	for _, f := range ofStore {
		to <- prometheus.MustNewConstMetric(f.desc, f.kind, float64(f.of(stored, served)))
	}
}
