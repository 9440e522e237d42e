// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
)

// RegisterCache registers the metrics of the artifact cache, which are read when
// they are collected.
func RegisterCache(registry prometheus.Registerer, loader *loader.Loader) error {
	return errors.Join(
		registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "satchel_artifact_cache_hits_total", Help: "How many loads of an artifact needed no download.",
		}, func() float64 { return float64(loader.Stats().Hits) })),
		registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "satchel_artifact_cache_misses_total", Help: "How many loads of an artifact needed a download.",
		}, func() float64 { return float64(loader.Stats().Misses) })),
		registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "satchel_artifact_cache_bytes", Help: "How many bytes the cached artifacts take.",
		}, func() float64 { return float64(loader.Stats().Bytes) })),
	)
}

// RegisterRemotes registers the metrics of remote clusters, which are read when they are collected.
func RegisterRemotes(registry prometheus.Registerer, remotes *tenant.Remotes) error {
	return errors.Join(
		registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "satchel_remote_clusters_unreachable", Help: "How many clusters of kubeconfigs receive no requests for now, because they do not answer or answer too slowly.",
		}, func() float64 { return float64(remotes.Figures().Unreachable) })),
		registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "satchel_remote_answers_refused_total", Help: "Answers of clusters of kubeconfigs that were refused because they are too large.",
		}, func() float64 { return float64(remotes.Figures().Refused) })),
	)
}

// RegisterWatches registers the metrics of the watches, which are read when they
// are collected.
func RegisterWatches(registry prometheus.Registerer, figures func() drift.Figures) error {
	return errors.Join(
		registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "satchel_watches", Help: "How many watches of the objects of deployments are open.",
		}, func() float64 { return float64(figures().Open) })),
		registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "satchel_watch_gaps", Help: "How many collections of objects are compared only at the interval, because they cannot be watched.",
		}, func() float64 { return float64(figures().Gaps) })),
		registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "satchel_watched_objects", Help: "How many objects of deployments should be watched.",
		}, func() float64 { return float64(figures().Objects) })),
		registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "satchel_watch_events_total", Help: "Watch events of objects of deployments.",
		}, func() float64 { return float64(figures().Events) })),
	)
}
