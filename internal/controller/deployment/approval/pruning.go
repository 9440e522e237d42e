// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// AllowedPruning says whether a removal deletes or orphans objects: where plans need an
// approval, as was approved, unless the spec deletes less.
func (a Approvals) AllowedPruning(ctx context.Context, d *v1alpha1.BundleDeployment) (pruning.Policy, error) {
	allowed, record := spec.Pruning(&d.Spec), a.Proven(d)
	if demanded, err := a.Demanded(ctx, d); err != nil || !demanded {
		return allowed, err
	}
	allowed.Definitions = allowed.Definitions && record != nil && record.DeletesDefinitions
	allowed.Orphan = allowed.Orphan || record != nil && record.DeletionPolicy == v1alpha1.DeletionOrphan
	return allowed, nil
}

// Demanded tells whether plans of a deployment may need an approval, by its spec or its namespace.
func (a Approvals) Demanded(ctx context.Context, d *v1alpha1.BundleDeployment) (bool, error) {
	required, err := a.Labels.Required(ctx, a.Live, d.Namespace)
	return required.Approval || effective.ApprovalMode(&d.Spec) != v1alpha1.ApprovalAutomatic, err
}
