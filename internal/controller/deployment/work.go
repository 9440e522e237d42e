// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Work counts what reconciles do to the objects of bundles. A nil one counts nothing.
type Work struct {
	outcomes        *prometheus.CounterVec
	pruned          prometheus.Counter
	planned, writes prometheus.Histogram
}

// NewWork registers the figures at the registry.
func NewWork(registry prometheus.Registerer) (*Work, error) {
	sizes := []float64{0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000}
	w := &Work{
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "satchel_applied_objects_total", Help: "Objects that were applied or left as they are, by what became of them.",
		}, []string{"outcome"}),
		pruned: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "satchel_pruned_objects_total", Help: "Objects that were deleted because they left their bundle.",
		}),
		planned: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "satchel_plan_objects", Help: "How many objects plans are about.", Buckets: sizes,
		}),
		writes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "satchel_plan_writes", Help: "How many objects plans write.", Buckets: sizes,
		}),
	}
	return w, errors.Join(registry.Register(w.outcomes), registry.Register(w.pruned), registry.Register(w.planned), registry.Register(w.writes))
}

// count adds what one reconcile did.
func (w *Work) count(s *state) {
	if w == nil || s == nil {
		return
	}
	w.countPlan(s)
	if s.applied != nil {
		for _, outcome := range s.applied.Outcomes {
			w.outcomes.WithLabelValues(strings.ToLower(string(outcome.Kind))).Inc()
		}
	}
	if s.pruned != nil {
		w.pruned.Add(float64(s.pruned.Deleted))
	}
	w.count(s.kept)
}

func (w *Work) countPlan(s *state) {
	if s.plan == nil {
		return
	}
	objects, writes := 0, 0
	for _, stage := range s.plan.Stages {
		for _, action := range stage.Actions {
			objects++
			if action.Writes() {
				writes++
			}
		}
	}
	w.planned.Observe(float64(objects))
	w.writes.Observe(float64(writes))
}
