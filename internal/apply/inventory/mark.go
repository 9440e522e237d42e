// SPDX-License-Identifier: Apache-2.0

package inventory

import "slices"

// Mark says how the deletion of an object counts towards a limit. With the zero value it
// counts, so that a lost mark is safe.
type Mark string

const (
	// Unproven: it was created by a revision that was not healthy since. It does not count.
	Unproven Mark = "n"
	// Leaving: it left the bundle, and its deletion was counted and allowed.
	Leaving Mark = "l"
	// RunOnce: it is the object of a hook. It does not count, and its drift is not corrected.
	RunOnce Mark = "h"
)

// Written is the mark of an object once it is applied. created tells that the object was neither listed nor found, and keeping
// that a former revision is corrected: what left the bundle of the next one still does.
func (m Mark) Written(created, keeping bool) Mark {
	switch {
	case created:
		return Unproven
	case m == Unproven, m == Leaving && keeping:
		return m
	}
	return ""
}

// Proven removes the mark Unproven from all objects but the given ones, which left the bundle:
// the applied revision is healthy. It tells whether that changes anything.
func (i Inventory) Proven(but map[ID]bool) (proven Inventory, changed bool) {
	proven = i
	for at := range i.Entries {
		if i.Entries[at].Mark != Unproven || but[i.Entries[at].ID] {
			continue
		}
		if !changed {
			proven.Entries, changed = slices.Clone(i.Entries), true
		}
		proven.Entries[at].Mark = ""
	}
	return proven, changed
}
