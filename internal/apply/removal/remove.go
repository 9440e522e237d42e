// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"context"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Removed is how far a removal has come.
type Removed struct {
	// Inventory lists what is left to remove.
	Inventory inventory.Inventory
	Pruned
	// Cleared names the webhooks of the bundle that were deleted first, because they blocked the removal.
	Cleared []string
}

// Done tells that nothing is left to remove.
func (r Removed) Done() bool { return r.Inventory.Len() == 0 }

// Remove removes what the inventory lists, stage by stage: custom resources of the
// bundle first, while their operator still runs; then webhooks; CRDs are released,
// without conversion, or deleted where that is asked for and no resource is left; then
// workloads, the rest, RBAC and ServiceAccounts, a namespace last; in each stage the objects
// of higher phases first. It does as much as can be done now, does not block and is called
// again, with the inventory it returned, until it is Done. A stage starts when the one
// before is gone. The result is valid beside an error, which means that something could
// not be read.
func Remove(ctx context.Context, client *tenant.Client, owner inventory.Owner, listed inventory.Inventory, o Options) (Removed, error) {
	o = o.defaulted()
	removed := Removed{Inventory: listed}
	in, err := observe.Cluster(ctx, client, observe.Request{Owner: owner, Previous: listed, Rules: plan.Rules{Pruning: o.Pruning}, Parallelism: o.Parallelism})
	if err != nil {
		return removed, removed.free(ctx, client, owner, o, err)
	}
	stages := plan.Removal(in)
	for _, stage := range stages {
		before := len(removed.Waiting) + len(removed.Denied)
		removed.stage(ctx, client, owner, stage, o)
		removed.Inventory = listed.Without(removed.Gone...)
		if err := ctx.Err(); err != nil {
			return removed, fmt.Errorf("removing stage %q: %w", stage.Name, err)
		}
		if len(removed.Waiting)+len(removed.Denied) > before {
			removed.deleteUnreachableWebhooks(ctx, client, owner, o, stages)
			return removed, nil
		}
	}
	return removed, nil
}

// Orphan releases what the inventory lists, as far as that is possible, for a removal that is abandoned: an object that
// cannot be read or written holds up no other. What is left in the Inventory of the result could not be released.
func Orphan(ctx context.Context, client *tenant.Client, owner inventory.Owner, listed inventory.Inventory, o Options) (Removed, error) {
	o = o.defaulted()
	removed := Removed{Inventory: listed}
	rules := plan.Rules{Pruning: pruning.Policy{Orphan: true}}
	in, err := observe.Cluster(ctx, client, observe.Request{Owner: owner, Previous: listed, Rules: rules, Keeping: true, Parallelism: o.Parallelism})
	if err != nil {
		return removed, err
	}
	for _, stage := range plan.Removal(in) {
		removed.stage(ctx, client, owner, stage, o)
		removed.Inventory = listed.Without(removed.Gone...)
	}
	return removed, ctx.Err()
}

// free removes the conversion from the CRDs of the inventory with a dead webhook,
// when that is why their resources cannot be read: otherwise a removal
// would wait for ever. It returns the given error when there is no such CRD.
func (r *Removed) free(ctx context.Context, client *tenant.Client, owner inventory.Owner, o Options, cause error) error {
	if !strings.Contains(cause.Error(), "conversion webhook") {
		return cause
	}
	d := o.deleter(client, owner)
	for _, entry := range r.Inventory.Entries {
		if !crds.IsCRD(entry.ID) {
			continue
		}
		waiting, note, err := d.migrator.RemoveDeadConversion(ctx, tenant.RefTo(entry.ID, crds.Resource))
		switch {
		case err != nil:
			return fmt.Errorf("%w; %s keeps its conversion: %w", cause, entry.ID, err)
		case waiting != "":
			r.Waiting = append(r.Waiting, Remaining{ID: entry.ID, Reason: waiting})
		case note != "":
			r.Notes = append(r.Notes, entry.ID.String()+" "+note)
		}
	}
	if len(r.Waiting)+len(r.Notes) == 0 {
		return cause
	}
	return nil
}
