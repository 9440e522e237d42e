// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// Untouched tells whether an object of the inventory is as it was left; live is nil if it does not exist. If all objects are, a plan
// of objects with the contents of the inventory has no action. Of the input, only Owner and Protection are read.
func (in Input) Untouched(entry inventory.Entry, live *ownership.Live) bool {
	if entry.Mark != "" {
		return false // it was not proven, leaves the bundle, or is of a hook
	}
	as := Object{ID: entry.ID, Rendered: entry.Rendered}
	if live == nil {
		return completed(as, entry)
	}
	verb, _ := compare(as, entry, *live)
	return verb == Unchanged && in.claim(entry, *live) == ownership.Owned
}
