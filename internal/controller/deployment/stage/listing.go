// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
)

// Listing is the inventory: what the status lists, and later what the cluster holds. Every stage that writes objects changes it
// by Record.
type Listing struct {
	current inventory.Current
	whole   *inventory.Inventory // of current; nil until a stage reads all of it
	// Unreadable: the inventory in the status cannot be read, and the deployment is being
	// deleted.
	Unreadable bool
	// Recovered is the rebuilt part of a lost inventory; nil if it was not lost.
	Recovered *observe.Recovered
}

// ListingOf is a listing of an inventory.
func ListingOf(current inventory.Current) Listing { return Listing{current: current} }

// Set replaces the inventory.
func (l *Listing) Set(current inventory.Current) { l.current, l.whole = current, nil }

// Current is the inventory for all who read a few of its objects: it costs nothing.
func (l *Listing) Current() inventory.Current { return l.current }

// Inventory is the inventory for all who read or replace all of its objects. The first call after a repair copies them, so a
// repair does not call it.
func (l *Listing) Inventory() inventory.Inventory {
	if l.whole == nil {
		whole := l.current.Inventory()
		l.whole = &whole
	}
	return *l.whole
}

// Record puts an inventory into the status.
func (l *Listing) Record(of *Subject, current inventory.Inventory) error {
	encoded, err := of.Kept.Encode(of.Room, current)
	if err != nil { // too many objects, or one that could not be read back: the same bundle fails again
		return failure.Error{Reason: v1alpha1.ReasonPlanRefused, Stalled: true, Err: err}
	}
	encoded.Recovered = of.Object.Status.Inventory != nil && of.Object.Status.Inventory.Recovered
	l.Set(inventory.CurrentOf(current))
	of.Object.Status.Inventory = encoded
	return nil
}

// deferral is how long the states in which repairs left objects may be stored late. A controller that is killed meanwhile
// writes these objects once more, without a change.
const deferral = 10 * time.Second

// RecordRepair puts the inventory with the entries of repaired objects into the status. If the inventory is large, it is kept in memory,
// and StoreDeferred puts it into the status later: to store all of it for each object that is repaired would cost more than the repair.
func (l *Listing) RecordRepair(of *Subject, repaired []inventory.Entry) error {
	changed, deferred := of.Kept.Defer(of.Object.Status.Inventory, l.current, repaired, of.Now)
	if !deferred {
		return l.Record(of, l.Inventory().With(repaired...))
	}
	l.Set(changed)
	return nil
}

// StoreDeferred puts a deferred inventory into the status, if the status is written anyway, or it is time. Otherwise it returns
// when that is.
func (l *Listing) StoreDeferred(of *Subject) (pause time.Duration, err error) {
	current, since, deferred := of.Kept.Deferred()
	if !deferred {
		return 0, nil
	}
	pause = deferral - of.Now.Sub(since)
	if pause > 0 && equality.Semantic.DeepEqual(of.Stored.Status, of.Object.Status) {
		return pause, nil
	}
	return 0, l.Record(of, current.Inventory())
}
