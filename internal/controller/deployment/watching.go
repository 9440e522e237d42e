// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"

	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// accountExists tells whether a ServiceAccount exists; one on another cluster is assumed to, since that cluster checks it.
func (r *Reconciler) accountExists(ctx context.Context, id tenant.Identity) (bool, error) {
	if id.Remote() {
		return true, nil
	}
	return r.Tenants.AccountExisted(ctx, id)
}

// unwatch ends all watches of a deployment.
func (r *Reconciler) unwatch(key drift.Key) {
	r.watches.Drop(key)
	r.names.Drop(key)
}

// Watched counts what is watched.
func (r *Reconciler) Watched() drift.Figures { return r.watches.Figures() }
