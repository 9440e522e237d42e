// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
)

// Listing is the inventory. Every stage that writes objects changes it by Record.
type Listing struct {
	Inventory inventory.Inventory // what the status lists, and later what the cluster holds
	// Unreadable: the inventory in the status cannot be read, and the deployment is being
	// deleted.
	Unreadable bool
	// Recovered is the rebuilt part of a lost inventory; nil if it was not lost.
	Recovered *observe.Recovered
}

// Record puts an inventory into the status.
func (l *Listing) Record(of *Subject, current inventory.Inventory) error {
	encoded, err := of.Room.Encode(current)
	if err != nil { // too many objects, or one that could not be read back: the same bundle fails again
		return failure.Error{Reason: v1alpha1.ReasonPlanRefused, Stalled: true, Err: err}
	}
	encoded.Recovered = of.Object.Status.Inventory != nil && of.Object.Status.Inventory.Recovered
	l.Inventory, of.Object.Status.Inventory = current, encoded
	return nil
}
