// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
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
