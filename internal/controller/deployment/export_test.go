// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/controller/approvals"
)

// Steps are the names of the steps of a reconcile, in order, each with the condition that reports its failure.
func Steps() (steps [][2]string) {
	for _, s := range declaredSteps() {
		steps = append(steps, [2]string{s.name, s.condition})
	}
	return steps
}

// Change changes what the reconciler works with.
func (r *Reconciler) Change(change func(*Deps)) {
	change(&r.Deps)
	r.connect()
}

// Unwatch ends the watches of a deployment until it is compared with the cluster again,
// as they end where another process leads.
func (r *Reconciler) Unwatch(key types.NamespacedName) { r.watches.Drop(key) }

// CloseWatches ends all watches and waits until they have ended.
func (r *Reconciler) CloseWatches() {
	r.names.Close()
	if r.watches != nil {
		r.watches.Close()
	}
}

// Collector deletes the BundleApprovals of this reconciler's deployments that ended before the retention.
func (r *Reconciler) Collector(retention time.Duration) *approvals.Collector {
	collector := r.Approvals().Collector(r.Shard)
	collector.Retention, collector.Now = retention, r.Now
	return collector
}

// WaitForConversions has each reconcile wait until the conversion that it starts has ended.
func (r *Reconciler) WaitForConversions() { r.renderer.Conversions.Patience = time.Minute }

// DoNotWaitForConversions has each reconcile end while the conversion that it starts is under way.
func (r *Reconciler) DoNotWaitForConversions() { r.renderer.Conversions.Patience = 0 }

// Watching tells what is watched.
func (r *Reconciler) Watching() drift.Figures { return r.watches.Figures() }

// Prove gives the record of a plan in a status its proof, and Proven tells whether it is believed.
func (r *Reconciler) Prove(d *v1alpha1.BundleDeployment) {
	r.Approvals().Prove(d, d.Status.Internal.Executed)
}

// Proven tells whether what the status says was carried out is believed.
func (r *Reconciler) Proven(d *v1alpha1.BundleDeployment) bool { return r.Approvals().Proven(d) != nil }

// Converting tells whether the conversion of some bundle is under way, or its result waits to be taken.
func (r *Reconciler) Converting() bool { return r.renderer.Conversions.Pending() > 0 }
