// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// kubeconfigPause is the pause before an unusable kubeconfig is read again.
const kubeconfigPause = 5 * time.Second

// unusable tells whether a failure needs another kubeconfig or other permissions.
func unusable(reason string) bool {
	switch reason {
	case v1alpha1.ReasonKubeConfigNotFound, v1alpha1.ReasonKubeConfigRefused, v1alpha1.ReasonClusterDenied:
		return true
	}
	return false
}

// crowdPause is the pause of a deployment when all places for remote clusters are
// taken.
const crowdPause = 500 * time.Millisecond

// turn takes a turn for a deployment, so that many deployments or reconcile requests of one
// namespace do not block other namespaces. Without a turn the reconcile ends, and is repeated
// after the pause; if that is zero it is queued when its turn has come.
func (r *Reconciler) turn(d *v1alpha1.BundleDeployment) (done func(), pause time.Duration, ok bool) {
	share, ok := r.shares.Take(client.ObjectKeyFromObject(d))
	if !ok {
		return nil, 0, false
	}
	pass, pause, ok := r.remoteTurn(d)
	if !ok {
		share()
		return nil, pause, false
	}
	return func() { pass(); share() }, 0, true
}

// remoteTurn takes a second turn for a deployment to another cluster, so that clusters that do
// not answer never block all workers, nor those of one namespace half of them. Other
// deployments need none.
func (r *Reconciler) remoteTurn(d *v1alpha1.BundleDeployment) (done func(), pause time.Duration, ok bool) {
	key := client.ObjectKeyFromObject(d)
	if d.Spec.KubeConfig == nil {
		r.turns.Drop(key)
		return func() {}, 0, true
	}
	pass, ok := r.turns.Take(key)
	switch {
	case !ok:
		return nil, 0, false
	case r.remotely == nil:
		return pass, 0, true
	case !r.remotely.TryAcquire(1):
		pass()
		return nil, crowdPause, false
	}
	return func() { r.remotely.Release(1); pass() }, 0, true
}
