// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Holds exposes as a metric how many objects each deployment keeps because their
// deletion is held. A nil one exposes nothing.
type Holds struct{ gauge *prometheus.GaugeVec }

// NewHolds registers satchel_prune_held at the registry.
func NewHolds(registry prometheus.Registerer) (*Holds, error) {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "satchel_prune_held",
		Help: "How many objects that left the bundle are kept because deleting them would exceed spec.prune.limit.",
	}, []string{"namespace", "name"})
	return &Holds{gauge: gauge}, registry.Register(gauge)
}

// show sets the metric of a deployment; it is removed when none is held.
func (h *Holds) show(key types.NamespacedName, held int) {
	switch {
	case h == nil:
	case held == 0:
		h.gauge.DeleteLabelValues(key.Namespace, key.Name)
	default:
		h.gauge.WithLabelValues(key.Namespace, key.Name).Set(float64(held))
	}
}

// showHeld exposes how many objects of the deployment are held, once a plan was made.
func (r *Reconciler) showHeld(s *state) {
	if s.decided.plan == nil || !s.reached[v1alpha1.PlannedCondition] {
		return
	}
	held := 0
	if s.decided.plan.Held != nil {
		held = len(s.decided.plan.Held.Objects)
	}
	r.Holds.show(types.NamespacedName{Namespace: s.object.Namespace, Name: s.object.Name}, held)
}
