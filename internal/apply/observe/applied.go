// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Applied reads, as the tenant, the metadata of the objects of an inventory, in the versions in which they were applied:
// with one LIST a kind and namespace. An error means that a kind is not served, or that something could not be read.
func Applied(ctx context.Context, client *tenant.Client, owner inventory.Owner, applied inventory.Inventory, protection ownership.Protection) (plan.Input, error) {
	in := plan.Input{
		Owner: owner, Previous: applied, Rules: plan.Rules{Protection: protection},
		Observed: plan.Observed{
			Live: map[inventory.ID]ownership.Live{}, Unreadable: map[inventory.ID]string{}, Unconfirmed: map[inventory.ID]string{},
			Kinds: map[schema.GroupKind]plan.Kind{},
		},
	}
	for _, entry := range applied.Entries {
		kind := entry.GroupKind()
		if _, known := in.Kinds[kind]; known {
			continue
		}
		served, err := client.Kinds().Find(ctx, kind.WithVersion(entry.Version))
		if err != nil {
			return plan.Input{}, fmt.Errorf("observing %s: %w", entry.ID, err)
		}
		in.Kinds[kind] = plan.Kind{Resource: served.Resource, Namespaced: served.Namespaced}
	}
	return in, readLive(ctx, client, &in, parallel.Default)
}
