// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Expiry exposes as metrics when the self-signed certificates of deployments expire. It
// is safe for concurrent use; a nil one exposes nothing.
type Expiry struct {
	gauge *prometheus.GaugeVec

	mu    sync.Mutex
	shown map[types.NamespacedName]map[string]time.Time
}

// NewExpiry registers satchel_certificate_expiry_timestamp_seconds at the registry.
func NewExpiry(registry prometheus.Registerer) (*Expiry, error) {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "satchel_certificate_expiry_timestamp_seconds",
		Help: "When a self-signed certificate of a deployment ends, in seconds since 1970. The Secret that holds it is given as namespace/name.",
	}, []string{"namespace", "name", "secret"})
	if err := registry.Register(gauge); err != nil {
		return nil, err
	}
	return &Expiry{gauge: gauge, shown: map[types.NamespacedName]map[string]time.Time{}}, nil
}

// Show replaces the metrics of a deployment; the keys are Secrets as namespace/name. No
// ends: the deployment is gone, or has no certificates.
func (e *Expiry) Show(key types.NamespacedName, ends map[string]time.Time) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for secret := range e.shown[key] {
		if _, still := ends[secret]; !still {
			e.gauge.DeleteLabelValues(key.Namespace, key.Name, secret)
		}
	}
	for secret, end := range ends {
		e.gauge.WithLabelValues(key.Namespace, key.Name, secret).Set(float64(end.Unix()))
	}
	e.shown[key] = ends
	if len(ends) == 0 {
		delete(e.shown, key)
	}
}
