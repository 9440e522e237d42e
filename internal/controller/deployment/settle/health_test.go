// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
)

// TestRecoveryTime: only an object that was healthy, and was neither changed nor recreated since, has the short time of
// recovery instead of spec.health.timeout.
func TestRecoveryTime(t *testing.T) {
	id := inventory.ID{Kind: "Deployment", Namespace: "shop", Name: "web"}
	sight := func(uid types.UID, generation int64, healthy bool) health.Sight {
		return health.Sight{UID: uid, Version: "1", Generation: generation, Healthy: healthy}
	}
	for name, tc := range map[string]struct {
		reason        string
		before, after health.Sight
		limited       bool
	}{
		"died":      {"its Pods failed", sight("a", 1, true), sight("a", 1, false), true},
		"changed":   {"a new generation needs time", sight("a", 1, true), sight("a", 2, false), false},
		"recreated": {"a repair made another object of the same generation", sight("a", 1, true), sight("b", 1, false), false},
		"missing":   {"it is recreated first", sight("a", 1, true), health.Sight{}, false},
		"starting":  {"it was never healthy", sight("a", 1, false), sight("a", 1, false), false},
	} {
		t.Run(name, func(t *testing.T) {
			note := &stage.Note{Health: stage.HealthNote{
				Objects: []plan.Object{{ID: id}}, Looked: map[inventory.ID]health.Sight{id: tc.before},
			}}
			in := &Input{Subject: &stage.Subject{Now: time.Unix(100, 0)}, Note: note, Settled: &stage.Settled{}}
			in.saw(health.Report{
				Total: 1, Unhealthy: []health.Object{{ID: id}}, Seen: map[inventory.ID]health.Sight{id: tc.after},
			})
			if limited := !note.Health.UnhealthySince.IsZero(); limited != tc.limited {
				t.Errorf("%s: got %t", tc.reason, limited)
			}
		})
	}
}
