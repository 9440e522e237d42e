// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// note is what the controller remembers of a deployment between two
// reconciles, so that waiting for health costs nothing but reading health. It
// is lost with the process; the next reconcile is a full one then.
type note struct {
	generation int64
	artifact   string // digest of the artifact that was applied
	requested  string // request to reconcile that was handled
	checked    time.Time
	total      int                  // objects in all
	objects    []plan.Object        // those whose health is looked at, without content
	unhealthy  []plan.Object        // those of them that were not healthy when last seen
	prune      []plan.DeletionStage // to carry out once all is healthy
	pauses     int                  // how often health was looked at since the apply
}

// memory holds the notes. The zero value is ready for use.
type memory struct {
	mu    sync.Mutex
	notes map[types.UID]note
}

func (m *memory) recall(uid types.UID) (note, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, found := m.notes[uid]
	return n, found
}

func (m *memory) keep(uid types.UID, n note) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notes == nil {
		m.notes = map[types.UID]note{}
	}
	m.notes[uid] = n
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.notes, uid)
}
