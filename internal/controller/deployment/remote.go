// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
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

// turn takes a turn for a deployment, so that many deployments or reconcile requests of one namespace do not block other namespaces.
// Deployments to this cluster and to others have turns of their own: clusters that do not answer never block one to this cluster. Without
// a turn the reconcile has to end; the deployment is queued again when its turn has come.
func (r *Reconciler) turn(d *v1alpha1.BundleDeployment) (done func(), ok bool) {
	key := client.ObjectKeyFromObject(d)
	turns, others := r.localTurns, r.remoteTurns
	if effective.IsRemote(d.Spec.Target.ClusterReference) {
		turns, others = others, turns
	}
	others.Drop(key) // from before spec.target named another cluster
	return turns.Take(key)
}
