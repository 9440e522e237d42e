// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

// registerCacheFigures registers the figures of the cache of artifacts, which are
// read when they are collected.
func registerCacheFigures(registry prometheus.Registerer, loader *artifact.Loader) error {
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
