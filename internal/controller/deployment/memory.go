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
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// note is what the controller remembers of a deployment between two reconciles, so that
// a wait for health only reads health. It is lost with the process; then the next
// reconcile is a full one.
type note struct {
	uid      types.UID
	attempt  attempt
	checked  time.Time // when everything was last compared
	renew    time.Time // when certificates have to be checked; zero when there are none
	removing bool      // the deployment is being removed
	version  string    // resource version of the BundleDeployment as it was written last
	behind   time.Time // since when the cache is older than that; zero when it is not
	planned  plannedNote
	applying applyingNote
	health   healthNote
}

// plannedNote is what is remembered of the last plan.
type plannedNote struct {
	prune     []plan.DeletionStage           // to carry out once all is healthy
	held      *pruning.Held                  // objects that left the bundle and are kept for now
	skipped   int                            // objects that are left out for now
	conflicts map[inventory.ID]fieldConflict // about objects that were repaired recently
	material  string                         // digest of the converted revision: see substance
	contains  *v1alpha1.PackageStatus        // the package that the revision is; nil for none
}

// applyingNote is what is remembered of the last apply, and of one that is not finished.
type applyingNote struct {
	wrote      time.Time        // when an object was last written
	waits      time.Time        // since when an apply waits; zero when it does not
	pauses     int              // how often unfinished work was checked since the last write
	phase      *apply.PhaseWait // the health that an apply waits for; nil for none
	phaseSince time.Time        // when that was found by comparing everything
	hook       *hookWait        // the hook that an apply waits for; nil for none
}

// healthNote is what is remembered of the health of the objects.
type healthNote struct {
	total          int                           // objects in all
	objects        []plan.Object                 // those with health checks, without content
	unhealthy      []plan.Object                 // those of them that were not healthy when last seen
	missing        bool                          // some of the unhealthy do not exist any more
	unhealthySince time.Time                     // since when formerly healthy, unchanged objects are unhealthy; zero when none are
	looked         map[inventory.ID]health.Sight // the last observed health of the objects
}

// old tells that the object from the cache is older than the last write of this
// controller: its inventory would be outdated.
func (s *state) old() bool {
	return pipeline.OlderVersion(s.object.ResourceVersion, s.note.version)
}

// attempt identifies the input of a full reconcile; when it changes, another is due.
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

// recall finds the note of a deployment; the note of an earlier deployment with the
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

// clear drops all notes, and returns the keys of their deployments.
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

// forget drops a note and returns the UID of its deployment; "" when there was none.
func (m *memory) forget(key types.NamespacedName) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := m.notes[key].uid
	delete(m.notes, key)
	return uid
}
