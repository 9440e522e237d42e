// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Removed is how far a removal has come.
type Removed struct {
	// Inventory lists what is left to remove.
	Inventory inventory.Inventory
	Pruned
}

// Done tells that nothing is left to remove.
func (r Removed) Done() bool { return r.Inventory.Len() == 0 }

// Remove removes what the inventory lists, stage by stage: custom resources of the
// bundle first, while their operator still runs; then webhooks; CRDs are released,
// without conversion; then workloads, the rest, rights and accounts, a namespace
// last. It does as much
// as can be done now, waits for nothing and is called again, with the inventory it
// returned, until it is Done. A stage starts when the one before is gone. The
// result is valid beside an error, which means that something could not be found out.
func Remove(ctx context.Context, client *tenant.Client, owner Owner, listed inventory.Inventory, o Options) (Removed, error) {
	o = o.defaulted()
	removed := Removed{Inventory: listed}
	in, err := Observe(ctx, client, Observing{Owner: owner, Previous: listed, Parallelism: o.Parallelism})
	if err != nil {
		return removed, err
	}
	for _, stage := range plan.Removal(in) {
		before := len(removed.Waiting) + len(removed.Denied)
		removed.stage(ctx, client, owner, stage, o)
		removed.Inventory = listed.Without(removed.Gone...)
		if err := ctx.Err(); err != nil {
			return removed, fmt.Errorf("removing stage %q: %w", stage.Name, err)
		}
		if len(removed.Waiting)+len(removed.Denied) > before {
			return removed, nil
		}
	}
	return removed, nil
}
