// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// Untouched tells whether each object of the inventory is as it was left. A plan of objects with the contents of the
// inventory then has no action. Desired is not read.
func (in Input) Untouched() bool {
	for _, entry := range in.Previous.Entries {
		if !in.untouched(entry) {
			return false
		}
	}
	return true
}

func (in Input) untouched(entry inventory.Entry) bool {
	if entry.Mark != "" {
		return false // it was not proven, leaves the bundle, or is of a hook
	}
	_, unread := in.Unreadable[entry.ID]
	live, exists := in.Live[entry.ID]
	as := Object{ID: entry.ID, Rendered: entry.Rendered}
	if unread || !exists {
		return !unread && completed(as, entry)
	}
	verb, _ := compare(as, entry, live)
	return verb == Unchanged && in.claim(entry, live) == ownership.Owned
}
