// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
)

// Note is what the controller remembers of a deployment between two reconciles, so that
// a wait for health only reads health. It is lost with the process; then the next
// reconcile is a full one.
type Note struct {
	UID      types.UID
	Known    bool        // this process has reconciled the deployment before; otherwise the note is empty
	Attempt  Attempt     // that was last compared with the cluster; zero if everything has to be compared
	Checked  time.Time   // when everything was last compared
	Renew    time.Time   // when certificates have to be checked; zero when there are none
	Removing bool        // the deployment is being removed
	Version  string      // resource version of the BundleDeployment as it was written last
	Behind   time.Time   // since when the cache is older than that; zero when it is not
	Held     *HeldStatus // the status that is not stored yet; nil for none
	Planned  PlannedNote
	Applying ApplyingNote
	Health   HealthNote
}

// PlannedNote is what is remembered of the last plan.
type PlannedNote struct {
	Prune     []plan.DeletionStage           // to carry out once all is healthy
	Held      *pruning.Held                  // objects that left the bundle and are kept for now
	Skipped   int                            // objects that are left out for now
	Conflicts map[inventory.ID]FieldConflict // about objects that were repaired recently
	Material  string                         // digest of the converted revision: see substance
	Contains  *v1alpha1.PackageStatus        // the package that the revision is; nil for none
	Requires  []v1alpha1.BundleRequirement   // what it requires
	// Steady: the same input would give a plan without actions as long as the metadata of the objects stays the same and the
	// cluster has the Capabilities; nil where the conversion did not ask for these.
	Steady       bool
	Capabilities *v1alpha1.Capabilities
}

// ApplyingNote is what is remembered of the last apply, and of one that is not finished.
type ApplyingNote struct {
	Wrote      time.Time        // when an object was last written
	Waits      time.Time        // since when an apply waits; zero when it does not
	Pauses     int              // how often unfinished work was checked since the last write
	Phase      *apply.PhaseWait // the health that an apply waits for; nil for none
	PhaseSince time.Time        // when that was found by comparing everything
	Hook       *HookWait        // the hook that an apply waits for; nil for none
	Room       *Room            // what was deleted for objects that the API server refused; nil for none
}

// Room are objects that are deleted before it is known whether the API server accepts their successors then.
type Room struct {
	Attempt   Attempt
	Began     time.Time
	Deletions []plan.Deletion
	Since     time.Time // when all of them were gone; zero while they are not
	Failed    string    // why they cannot be deleted; empty while they can
}

// HealthNote is what is remembered of the health of the objects.
type HealthNote struct {
	Total          int                           // objects in all
	Objects        []plan.Object                 // those with health checks, without content
	Unhealthy      []plan.Object                 // those of them that were not healthy when last seen
	Missing        bool                          // some of the unhealthy do not exist any more
	UnhealthySince time.Time                     // since when formerly healthy, unchanged objects are unhealthy; zero when none are
	Looked         map[inventory.ID]health.Sight // the last observed health of the objects
}

// Attempt identifies the input of a full reconcile; when it changes, another is due.
type Attempt struct {
	Generation int64
	Revision   string // of the artifact
	Digest     string // of the artifact
	Requested  string // request to reconcile
	Inputs     string // digest of the Secrets and ConfigMaps that the conversion needs
	Reach      string // where the kubeconfig leads, as keyed hashes
}
