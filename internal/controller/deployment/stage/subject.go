// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/expression"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Subject is the deployment that is reconciled. Only its status changes during a reconcile.
type Subject struct {
	Object *v1alpha1.BundleDeployment
	// Before is the deployment as it was when the reconcile began, and Stored as the API server has it.
	Before *v1alpha1.BundleDeployment
	Stored *v1alpha1.BundleDeployment
	Owner  inventory.Owner
	Home   string // namespace of the CA, if it is not the deployment's
	// HashKey makes the hashes in the status, which holds it as WrappedKey.
	HashKey    []byte
	WrappedKey string
	// Expressions bounds what the expressions of the deployment take in this reconcile.
	Expressions *expression.Budget
	// Rules evaluate the health of objects; RulesErr says why they are invalid.
	Rules    health.Rules
	RulesErr error
	// Room is how much the inventory may take in the status.
	Room inventory.Limit
	// Kept is the inventory as it was read or written last, if it is large.
	Kept *inventory.Kept
	Now  time.Time
	// Keeping: this is drift correction of the last applied revision, while a newer one fails.
	Keeping bool
	// Snapshot reads what was applied last.
	Snapshot *snapshot.Reader
}

// RoomFor returns how much the inventory may take in the status of a deployment: what the rest of the object leaves, and never
// less than it takes already, since it has to be stored while objects are removed, too. Fields of the spec count twice: the API
// server stores the names of those that were applied once more, in the managed fields, which the controller does not cache.
func RoomFor(d *v1alpha1.BundleDeployment) inventory.Limit {
	rest := *d
	rest.Status.Inventory = nil
	size := 0
	for _, part := range []any{&rest, &rest.Spec} {
		encoded, err := json.Marshal(part)
		if err != nil {
			return 0
		}
		size += len(encoded)
	}
	return max(inventory.LimitBeside(size), inventory.LimitOf(d.Status.Inventory))
}

// Key is the name of the deployment.
func (s *Subject) Key() client.ObjectKey { return client.ObjectKeyFromObject(s.Object) }

// AuthorityID is the Secret of the certificates' authority.
func (s *Subject) AuthorityID() inventory.ID { return certificates.AuthorityOf(s.Owner, s.Home) }

// Warns tells that drift is reported, and not corrected.
func (s *Subject) Warns() bool { return effective.DriftMode(&s.Object.Spec) == v1alpha1.DriftWarn }

// Recreates tells that objects are recreated where immutable fields of them change.
func (s *Subject) Recreates() bool {
	return !s.Keeping && s.Object.Spec.Apply.Recreate == v1alpha1.RecreateOnImmutableChange
}

// BackgroundRetryInterval is the pause before retrying something that is not urgent.
func (s *Subject) BackgroundRetryInterval() time.Duration {
	return min(effective.RetryInterval(&s.Object.Spec), effective.Interval(&s.Object.Spec))
}

// Fits tells whether the inventory of a plan can be stored, in place of the last one, until all of the plan is done.
func (s *Subject) Fits(last inventory.Inventory, made *plan.Plan) error {
	if s.Keeping {
		return nil // it was stored before
	}
	removed := map[inventory.ID]bool{}
	for _, stage := range slices.Concat(made.PruneFirst, made.Prune) {
		for _, deletion := range stage.Deletions {
			removed[deletion.ID] = true
		}
	}
	if made.Held != nil {
		for _, id := range made.Held.Objects {
			removed[id] = true
		}
	}
	if err := s.Room.CheckPlanned(last, made.Inventory, removed); err != nil {
		return failure.Error{Reason: v1alpha1.ReasonPlanRefused, Stalled: true, Err: err}
	}
	return nil
}

// HooksMoved tells whether a hook was created or completed in this reconcile.
func (s *Subject) HooksMoved() bool {
	was, is := s.Before.Status.Hooks, s.Object.Status.Hooks
	if was == nil || is == nil {
		return is != nil && (is.Completed > 0 || hookUID(is) != "")
	}
	return is.Completed != was.Completed || hookUID(is) != hookUID(was)
}

func hookUID(of *v1alpha1.HooksStatus) string {
	if of.Running == nil {
		return ""
	}
	return of.Running.UID
}

// Write stores the status as it is now, if it differs from what is stored.
func (s *Subject) Write(ctx context.Context, writer pipeline.StatusWriter) error {
	s.Object.Status.Internal.HashKey = s.WrappedKey
	if err := writer.Write(ctx, s.Stored, s.Object); err != nil {
		return err
	}
	s.Stored = s.Object.DeepCopy()
	return nil
}
