// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Sweep drops snapshots, which hold the values of Secrets, and cache pins of deployments that were deleted while no controller ran or lost
// their finalizer to another client, or that moved to another shard. The leader runs it once.
func (r *Reconciler) Sweep(ctx context.Context) error {
	var deployments v1alpha1.BundleDeploymentList
	if err := r.APIReader.List(ctx, &deployments, r.Shard.Listed()); err != nil {
		return fmt.Errorf("listing deployments: %w", err)
	}
	live := make(map[string]bool, len(deployments.Items))
	for i := range deployments.Items {
		live[string(deployments.Items[i].UID)] = true
	}
	return errors.Join(r.Snapshots.KeepOnly(live), r.Artifacts.KeepOnly(live))
}
