// SPDX-License-Identifier: Apache-2.0

// Package figures are the metrics of the rollout controller.
package figures

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Figures counts starts and decisions. A nil one counts nothing.
type Figures struct {
	starts    prometheus.Counter
	decisions prometheus.Histogram
}

// New registers the metrics at the registry.
func New(registry prometheus.Registerer) (*Figures, error) {
	f := &Figures{
		starts: prometheus.NewCounter(prometheus.CounterOpts{Name: "satchel_rollout_starts_total", Help: "How many starts of clusters were recorded."}),
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "satchel_rollout_decision_seconds", Help: "How long a decision about a rollout took.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
		}),
	}
	return f, errors.Join(registry.Register(f.starts), registry.Register(f.decisions))
}

// Started counts recorded starts.
func (f *Figures) Started(count int) {
	if f != nil {
		f.starts.Add(float64(count))
	}
}

// Decided observes how long a decision took.
func (f *Figures) Decided(took time.Duration) {
	if f != nil {
		f.decisions.Observe(took.Seconds())
	}
}

var (
	clustersDesc = prometheus.NewDesc("satchel_rollout_clusters", "How many clusters of a rollout have a state.", []string{"namespace", "name", "state"}, nil)
	wavesDesc    = prometheus.NewDesc("satchel_rollout_wave", "How many waves of a rollout have a state.", []string{"namespace", "name", "state"}, nil)
	completeDesc = prometheus.NewDesc("satchel_rollout_last_complete_timestamp_seconds", "When a revision of a rollout last completed all waves.", []string{"namespace", "name"}, nil)
)

// Census shows the states of all rollouts when metrics are collected.
type Census struct {
	// Reader reads the rollouts, from a cache.
	Reader client.Reader
	// Shard selects the rollouts of this process; all if nil.
	Shard client.ListOption
	// Leads is closed when this process is the leader; others show nothing.
	Leads <-chan struct{}
}

// Describe implements prometheus.Collector.
func (c Census) Describe(to chan<- *prometheus.Desc) {
	to <- clustersDesc
	to <- wavesDesc
	to <- completeDesc
}

// Collect implements prometheus.Collector.
func (c Census) Collect(to chan<- prometheus.Metric) {
	select {
	case <-c.Leads:
	default:
		return
	}
	var all v1alpha1.BundleRolloutList
	options := []client.ListOption{client.UnsafeDisableDeepCopy}
	if c.Shard != nil {
		options = append(options, c.Shard)
	}
	if err := c.Reader.List(context.Background(), &all, options...); err != nil {
		ctrl.Log.Info("cannot count rollouts for the metrics", "error", err.Error())
		return
	}
	for i := range all.Items {
		show(&all.Items[i], to)
	}
}

func show(of *v1alpha1.BundleRollout, to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, state ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{of.Namespace, of.Name}, state...)...)
	}
	if count := of.Status.Clusters; count != nil {
		for state, value := range map[string]int32{
			"updated": count.Updated, "updating": count.Updating, "failed": count.Failed, "unreachable": count.Unreachable,
			"held": count.Held, "pending": count.Pending, "leaving": count.Leaving, "unmatched": count.Unmatched,
		} {
			gauge(clustersDesc, float64(value), state)
		}
	}
	waves := map[v1alpha1.RolloutWaveState]int{}
	for _, wave := range of.Status.Waves {
		waves[wave.State]++
	}
	for _, state := range []v1alpha1.RolloutWaveState{v1alpha1.WavePending, v1alpha1.WaveOpen, v1alpha1.WaveSucceeded, v1alpha1.WaveComplete} {
		gauge(wavesDesc, float64(waves[state]), string(state))
	}
	if current := of.Status.CurrentRevision; current != nil && current.CompletionTime != nil {
		gauge(completeDesc, float64(current.CompletionTime.Unix()))
	}
}
