// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// adopt transfers the managed fields of an object's former owner to our manager, so that
// the apply that follows also removes what is not desired. It removes the former owner's
// labels and annotations. The decision of the plan is made again for the object as it is
// now; when the object changes meanwhile, adopt reads it again.
func (w Writer) adopt(ctx context.Context, action plan.Action) error {
	ref := tenant.RefTo(action.ID, action.Resource)
	var err error
	for range Attempts {
		var live *metav1.PartialObjectMetadata
		if live, err = w.Client.Metadata(ctx, ref); err != nil {
			break
		}
		seen := ownership.LiveOf(live, w.Owner)
		switch seen.ClaimOf(w.Owner, w.Protection) {
		case ownership.Owned:
			return nil // adopted by an earlier attempt
		case ownership.Foreign:
			return &RefusalError{Why: violation.Collides(seen, action.ID, w.Owner).String()}
		}
		if err = w.recordOwner(ctx, ref, live); !apierrors.IsConflict(err) {
			break
		}
	}
	if err == nil || apierrors.IsNotFound(err) { // the apply creates it
		return nil
	}
	return fmt.Errorf("adopting the object: %w", err)
}

// recordOwner records our manager as the owner, on condition that the object is as it was read.
func (w Writer) recordOwner(ctx context.Context, ref tenant.Ref, live *metav1.PartialObjectMetadata) error {
	entries, err := fieldmanager.HandOver(live.ManagedFields, w.Owner.Manager())
	if err != nil {
		return err
	}
	metadata := ownership.Unmark(live)
	metadata["managedFields"] = entries
	_, err = w.Client.Merge(ctx, ref, MetadataPatch(live, metadata), inventory.OrphanManager)
	return err
}
