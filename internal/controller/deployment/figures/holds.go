// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
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

// Show sets the metric of a deployment; it is removed when none is held.
func (h *Holds) Show(key types.NamespacedName, held int) {
	switch {
	case h == nil:
	case held == 0:
		h.gauge.DeleteLabelValues(key.Namespace, key.Name)
	default:
		h.gauge.WithLabelValues(key.Namespace, key.Name).Set(float64(held))
	}
}
