// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/retry"
)

// note is what the controller remembers of a deployment between two
// reconciles, so that waiting for health costs nothing but reading health. It
// is lost with the process; the next reconcile is a full one then.
type note struct {
	uid        types.UID
	attempt    attempt
	checked    time.Time
	wrote      time.Time            // when an object was last written
	renew      time.Time            // when certificates have to be looked at; zero when there are none
	waits      time.Time            // since when an apply waits for something; zero when it does not
	total      int                  // objects in all
	phase      *apply.PhaseWait     // what an apply waits for; nil when it is not for health
	phaseSince time.Time            // when that was found by comparing everything
	hook       *hookWait            // what an apply waits for; nil when it is not for a hook
	skipped    int                  // objects that are left out for now
	objects    []plan.Object        // those whose health is looked at, without content
	unhealthy  []plan.Object        // those of them that were not healthy when last seen
	prune      []plan.DeletionStage // to carry out once all is healthy
	held       *plan.Held           // what left the bundle and is kept for now
	pauses     int                  // how often something under way was looked at since the last write
	missing    bool                 // of the unhealthy, some do not exist any more
	removing   bool                 // the deployment is being removed
	version    string               // of the BundleDeployment as it was written last
	behind     time.Time            // since when the cache has not shown that; zero when it has
	sick       time.Time            // since when objects are not healthy that had been, and nobody changed; zero when none are

	fights map[inventory.ID]fight        // over objects that were repaired lately
	looked map[inventory.ID]health.Sight // how the objects were when their health was looked at last

	material string                  // what the revision became: see substance
	contains *v1alpha1.PackageStatus // the package that the revision is; nil for none
}

// old tells that the object, which comes from a cache, was read before this controller
// wrote it last: its inventory would be that of before.
func (s *state) old() bool {
	return retry.Older(s.object.ResourceVersion, s.note.version)
}

// attempt is what a full reconcile was about; when it changes, another is due.
type attempt struct {
	generation int64
	revision   string // of the artifact
	digest     string // of the artifact
	requested  string // request to reconcile
	inputs     string // digest of the Secrets and ConfigMaps that the conversion needs
}

// memory holds the notes. The zero value is ready for use.
type memory struct {
	mu    sync.Mutex
	notes map[types.NamespacedName]note
}

// recall finds the note of a deployment; one of an earlier deployment of the
// same name does not count.
func (m *memory) recall(key types.NamespacedName, uid types.UID) (note, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, found := m.notes[key]
	if !found || n.uid != uid {
		return note{uid: uid}, false
	}
	return n, true
}

// clear drops all notes, and says of which deployments they were.
func (m *memory) clear() []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.Collect(maps.Keys(m.notes))
	m.notes = nil
	return keys
}

func (m *memory) keep(key types.NamespacedName, n note) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notes == nil {
		m.notes = map[types.NamespacedName]note{}
	}
	m.notes[key] = n
}

// forget drops a note and says whose it was; "" when there was none.
func (m *memory) forget(key types.NamespacedName) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := m.notes[key].uid
	delete(m.notes, key)
	return uid
}
