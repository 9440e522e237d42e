// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"
)

// Mark says of an object how its deletion counts towards a limit. The zero value
// counts: it is what is left of a mark that was lost.
type Mark string

const (
	// Unproven: a revision created it that was not healthy since. It does not count.
	Unproven Mark = "n"
	// Leaving: it left the bundle, and its deletion was counted and allowed.
	Leaving Mark = "l"
	// RunOnce: it is the object of a hook. It does not count, and is not kept from drifting.
	RunOnce Mark = "h"
)

func decodeMark(text string) (Mark, error) {
	switch mark := Mark(text); mark {
	case "", Unproven, Leaving, RunOnce:
		return mark, nil
	}
	return "", fmt.Errorf("%.32q is no mark of an object", text)
}

// Proven takes the mark Unproven off all objects but the given ones: what was
// installed is healthy, apart from what left it. It tells whether that changes anything.
func (i Inventory) Proven(but map[ID]bool) (proven Inventory, changed bool) {
	proven = Inventory{Target: i.Target, Entries: slices.Clone(i.Entries)}
	for at := range proven.Entries {
		if entry := &proven.Entries[at]; entry.Mark == Unproven && !but[entry.ID] {
			entry.Mark, changed = "", true
		}
	}
	return proven, changed
}
