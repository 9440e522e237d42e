// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"errors"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// Work counts the changes of bundle objects by reconciles. A nil one counts nothing.
type Work struct {
	outcomes        *prometheus.CounterVec
	corrected       *prometheus.CounterVec
	pruned          prometheus.Counter
	planned, writes prometheus.Histogram
	turns           *prometheus.CounterVec
}

// NewWork registers the metrics at the registry.
func NewWork(registry prometheus.Registerer) (*Work, error) {
	sizes := []float64{0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000}
	w := &Work{
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "satchel_applied_objects_total", Help: "Objects that were applied or left unchanged, by outcome.",
		}, []string{"outcome"}),
		corrected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "satchel_drift_corrected_total", Help: "How many objects of a deployment were restored after another client had changed or deleted them.",
		}, []string{"namespace", "name"}),
		pruned: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "satchel_pruned_objects_total", Help: "Objects that were deleted because they left their bundle.",
		}),
		planned: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "satchel_plan_objects", Help: "How many objects plans contain.", Buckets: sizes,
		}),
		writes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "satchel_plan_writes", Help: "How many objects plans write.", Buckets: sizes,
		}),
	}
	w.turns = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "satchel_remote_turns_ended_total", Help: "Turns of deployments to other clusters that used up their time budget, by whether the cluster had confirmed anything.",
	}, []string{"progress"})
	for _, progress := range []string{"true", "false"} { // so that the first one already changes a rate
		w.turns.WithLabelValues(progress)
	}
	return w, errors.Join(registry.Register(w.turns), registry.Register(w.outcomes), registry.Register(w.corrected), registry.Register(w.pruned), registry.Register(w.planned), registry.Register(w.writes))
}

// Written counts what an apply or a repair did to objects; nil is nothing.
func (w *Work) Written(key types.NamespacedName, result *apply.Result) {
	if w == nil || result == nil {
		return
	}
	for _, outcome := range result.Outcomes {
		w.outcomes.WithLabelValues(strings.ToLower(string(outcome.Kind))).Inc()
		if outcome.Kind == apply.Repaired {
			w.corrected.WithLabelValues(key.Namespace, key.Name).Inc()
		}
	}
}

// Pruned counts deleted objects.
func (w *Work) Pruned(objects int) {
	if w != nil {
		w.pruned.Add(float64(objects))
	}
}

// Turn counts a turn that used up its budget.
func (w *Work) Turn(progress bool) {
	if w != nil {
		w.turns.WithLabelValues(strconv.FormatBool(progress)).Inc()
	}
}

// Forget drops the counters of a deployment that is gone.
func (w *Work) Forget(key types.NamespacedName) {
	if w != nil {
		w.corrected.DeleteLabelValues(key.Namespace, key.Name)
	}
}

// Planned counts the objects of a plan, and those that it writes; nil is no plan.
func (w *Work) Planned(of *plan.Plan) {
	if w == nil || of == nil {
		return
	}
	objects, writes := 0, 0
	for _, stage := range of.Stages {
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
