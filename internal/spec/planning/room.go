// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"encoding/json"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// RoomFor returns how much the inventory may take in the status of a deployment: what the rest of the object leaves, and never
// less than it takes already, since it has to be stored while objects are removed, too. Fields of the spec count twice: the API
// server stores the names of those that were applied once more, in the managed fields, which the controller does not cache.
func RoomFor(d *v1alpha1.BundleDeployment) inventory.Limit {
	rest := *d
	rest.Status.Inventory = nil
	size := 0
	for _, part := range []any{&rest, &rest.Spec} {
		encoded, err := json.Marshal(part)
		if err != nil {
			return 0
		}
		size += len(encoded)
	}
	return max(inventory.LimitBeside(size), inventory.LimitOf(d.Status.Inventory))
}
