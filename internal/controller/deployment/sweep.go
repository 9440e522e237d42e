// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Sweep drops what is kept of deployments that went while no controller ran, or
// whose finalizer somebody took off: snapshots, which hold the values of
// Secrets, and pins in the cache. The same holds for those that went to another shard.
// It is run once, by the leader.
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

// sweepOnce runs Sweep. What it could not drop stays until the next start.
func sweepOnce(r *Reconciler) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if err := r.Sweep(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "what deleted deployments left in the cache stays until the next start")
		}
		return nil
	}
}
