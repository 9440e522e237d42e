// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/rollout/approval"
	"github.com/satchel-dev/satchel/internal/controller/rollout/fleet"
	"github.com/satchel-dev/satchel/internal/controller/rollout/inputs"
	"github.com/satchel-dev/satchel/internal/controller/rollout/preflight"
	"github.com/satchel-dev/satchel/internal/controller/rollout/removal"
	"github.com/satchel-dev/satchel/internal/controller/rollout/rendered"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/identity"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// state is one reconcile of a rollout.
type state struct {
	object *v1alpha1.BundleRollout // its status is changed
	before *v1alpha1.BundleRollout // as it was read
	stored *v1alpha1.BundleRollout // as it was written last
	now    time.Time
	memory *memory

	strategy *rollout.Strategy
	// source is the BundleSource that the rollout follows; nil if there is none.
	source *v1alpha1.BundleSource
	// wanted is the revision to move to; nil while it is not known, or not ready. Then awaits says why.
	wanted *v1alpha1.RolloutRevision
	awaits *failure
	// refused says that the API server refuses BundleDeployments of the wanted revision, which is not begun.
	refused *failure
	// revisions are those that BundleDeployments are rendered from, by name.
	revisions map[string]*rendered.Revision
	// clusters are those of the rollout, by name.
	clusters map[string]revision.Cluster
	// unlisted says why the clusters could not be listed.
	unlisted error
	// children are the BundleDeployments of the rollout, by the name of their cluster.
	children map[string]*v1alpha1.BundleDeployment
	// approvals are the decisions of users about the rollout.
	approvals approval.Decisions
	// duplicates are clusters that another name stands for, too.
	duplicates map[string]bool
	// leaving is what the removal of clusters that are no longer selected has to heed.
	leaving  map[string]identity.Leaving
	input    rollout.Input
	decision *rollout.Decision
	removal  rollout.RemovalDecision
	// again is when to reconcile again without an event; 0 if only the interval matters.
	again time.Duration
	// gone tells that the rollout does not exist any more.
	gone bool
}

func (r *Reconciler) newState(object *v1alpha1.BundleRollout, memory *memory) *state {
	return &state{
		object: object, before: object.DeepCopy(), stored: object.DeepCopy(), now: r.Now().Truncate(time.Second), memory: memory,
		revisions: map[string]*rendered.Revision{},
	}
}

func (s *state) key() types.NamespacedName { return client.ObjectKeyFromObject(s.object) }

// deleting tells whether the rollout is being deleted.
func (s *state) deleting() bool { return !s.object.DeletionTimestamp.IsZero() }

// settles is how long a process that has just begun, or lost a race, reads BundleDeployments past its cache.
const settles = 5 * time.Second

// memory is what a process keeps of a rollout. All of it can be lost.
type memory struct {
	uid types.UID
	// began is since when this process observes: see clock.Clock. What was observed before is forgotten.
	began   time.Time
	decided time.Time
	// liveUntil is until when BundleDeployments are read past the cache.
	liveUntil time.Time
	// clusters are those that were listed last.
	clusters fleet.Known
	// unreachable is since when clusters could not be reached.
	unreachable map[string]time.Time
	// names are those of clusters that have, or had, another one.
	names removal.Memory
	// rendered are the hashes of rendered specs.
	rendered rendered.Cache
	// inputs are those that all clusters share.
	inputs sharedInputs
	// checked is how the revision to begin was checked.
	checked preflight.Result
	// own are the digests of inputs that only one cluster has.
	own inputs.Digests
	// data are the revisions that were stored or loaded.
	data map[string]keptRevision
	// collected is when unused revisions were removed last.
	collected time.Time
	// refused are starts that the API server refused: the reason, by refusal.
	refused map[refusal]string
}

// keptRevision is a revision as it is stored.
type keptRevision struct {
	digest string
	data   revision.Data
}

// refusal identifies a BundleDeployment that was refused.
type refusal struct{ cluster, hash string }

// doubt reads BundleDeployments past the cache for some time.
func (m *memory) doubt(now time.Time) { m.liveUntil = now.Add(settles) }

// memories are those of all rollouts. The zero value is ready for use.
type memories struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*memory
}

// of is the memory of a rollout, which one reconcile at a time uses.
func (m *memories) of(key types.NamespacedName, uid types.UID, now, began time.Time) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[types.NamespacedName]*memory{}
	}
	if known := m.all[key]; known != nil && known.uid == uid && known.began.Equal(began) {
		return known
	}
	fresh := &memory{uid: uid, began: began, unreachable: map[string]time.Time{}, refused: map[refusal]string{}, data: map[string]keptRevision{}}
	fresh.doubt(now)
	m.all[key] = fresh
	return fresh
}

func (m *memories) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}
