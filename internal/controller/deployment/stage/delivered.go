// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
)

// Delivered is what was written: the result of the steps repair, and hooks to apply, of prune, and of
// a removal.
type Delivered struct {
	Unbegun  Unbegun // the status before the plan was begun
	Applied  *apply.Result
	Complete bool    // the revision is applied
	Repaired *Repair // the repair of objects reported by watches, without a full comparison
	Drift    Drift   // that watches reported, and that is not repaired
	// WaitsFor says what an unfinished apply waits for, such as a CRD that is not
	// established yet.
	WaitsFor string
	Phase    *apply.PhaseWait // the earlier phases that must become healthy first
	Hooks    HookProgress
	Pruned   *removal.Pruned
	Removed  *removal.Removed
	Cut      Cut // the turn ended because its budget was used up
	// LeftOut lists the objects of the last applied revision that could not be corrected, and why.
	LeftOut  []string
	Warnings []string
}

// Unbegun holds the status fields that the beginning of a plan replaces.
type Unbegun struct {
	Executed  *v1alpha1.ExecutedPlan
	Catalog   *v1alpha1.CatalogPackageStatus
	Encoded   *v1alpha1.Inventory
	Inventory inventory.Inventory
	Hooks     *v1alpha1.HooksStatus
}

// Repair is the repair of a few objects that watches reported.
type Repair struct {
	Applied *apply.Result
	Left    []drift.Object // their state after the repair
}

// Result is what was written; nil when nothing was.
func (m *Repair) Result() *apply.Result {
	if m == nil {
		return nil
	}
	return m.Applied
}

// HookProgress is how far the hooks got.
type HookProgress struct {
	// At is the hook that an apply waits for.
	At *HookWait
	// Entries are the inventory entries that hooks added; nil for those that they removed.
	Entries map[inventory.ID]*inventory.Entry
	// Waits names the hook that is waited for once everything is applied, or in a removal. Failed: one failed after
	// everything was applied, in this reconcile.
	Waits  string
	Failed bool
}

// HookWait is a hook that an apply waits for, without content.
type HookWait struct {
	Run plan.HookRun
	UID string
}

// Waits tells that the apply waits: for a hook, a CRD, the health of a phase or a migration.
func (d *Delivered) Waits() bool { return d.WaitsFor != "" && d.Cut == Uncut && !d.Complete }

// Cut tells whether a turn used up its budget, and with which progress.
type Cut int

const (
	// Uncut: it did not.
	Uncut Cut = iota
	// CutProgressing: the remote server confirmed something in it.
	CutProgressing
	// CutIdle: it confirmed nothing.
	CutIdle
)

// Live are the objects that were repaired in this reconcile, as the API server returned them.
func (m *Repair) Live() map[inventory.ID]*unstructured.Unstructured {
	if m == nil || m.Applied == nil {
		return nil
	}
	return m.Applied.Live
}

// In is an inventory with the changes by hooks in this reconcile.
func (p *HookProgress) In(inventoried inventory.Inventory) inventory.Inventory {
	var with []inventory.Entry
	var without []inventory.ID
	for id, entry := range p.Entries {
		if entry == nil {
			without = append(without, id)
		} else {
			with = append(with, *entry)
		}
	}
	return inventoried.Without(without...).With(with...)
}

// IsTransient tells that a failed removal may succeed without any change: the API server was busy or
// restarting.
func (d *Delivered) IsTransient(err error) bool {
	if d.Removed != nil && len(d.Removed.Denied) > 0 {
		return !slices.ContainsFunc(d.Removed.Denied, func(e *objecterror.Error) bool { return !e.Transient() })
	}
	f := failure.Of(err)
	return f.Reason == v1alpha1.ReasonFailed && !f.Stalled && !apierrors.IsForbidden(err)
}
