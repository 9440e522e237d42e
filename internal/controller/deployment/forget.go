// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// forget drops everything that this process remembers of a deployment that is gone, also if its finalizer was removed by another client.
// What a stage or subsystem remembers between two reconciles is its own, behind a type that can forget one deployment. TestForget fails
// for a memory that is missing here.
func (r *Reconciler) forget(key types.NamespacedName) error {
	r.localTurns.Drop(key)
	r.remoteTurns.Drop(key)
	r.demands.Drop(key, r.Now())
	r.backoff.Forget(key)
	r.Expiry.Show(key, nil)
	r.Metrics.Forget(v1alpha1.BundleDeploymentKind, key)
	r.Holds.Show(key, 0)
	r.resolve.Forget(key)
	r.decide.Forget(key)
	r.unwatch(key)
	r.scrubs.Forget(key)
	r.renderer.Forget(key)
	r.progress.Forget(key)
	r.handover.Forget(key)
	r.Work.Forget(key)
	uid := r.memory.Forget(key)
	if uid == "" {
		return nil // the next start removes its files
	}
	r.inventories.Forget(string(uid))
	r.recent.Forget(string(uid))
	return errors.Join(r.Snapshots.Delete(string(uid)), r.Artifacts.Forget(string(uid)))
}
