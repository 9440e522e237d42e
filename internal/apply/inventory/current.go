// SPDX-License-Identifier: Apache-2.0

package inventory

// Current is an inventory with later states of some of its objects, so that one more later state costs no copy of the
// inventory. The zero value is empty. Its methods change neither the receiver nor what it was made from.
type Current struct {
	listed Inventory
	later  []Entry // sorted by identity; each replaces an entry of listed
}

// CurrentOf is an inventory without later states.
func CurrentOf(i Inventory) Current { return Current{listed: i} }

// Target is the UID of kube-system in the target cluster.
func (c Current) Target() string { return c.listed.Target }

// In is the same in another target cluster.
func (c Current) In(target string) Current {
	c.listed.Target = target
	return c
}

// Len is the number of objects.
func (c Current) Len() int { return c.listed.Len() }

// Get finds the latest entry of an object.
func (c Current) Get(id ID) (Entry, bool) {
	if at, found := (Inventory{Entries: c.later}).index(id); found {
		return c.later[at], true
	}
	return c.listed.Get(id)
}

// Inventory is the whole inventory. With later states that is a copy.
func (c Current) Inventory() Inventory { return c.listed.With(c.later...) }

// Complete is Inventory.Complete, and copies nothing if no Job completed.
func (c Current) Complete(jobs map[ID]bool) (completed Inventory, changed bool) {
	if len(jobs) == 0 {
		return Inventory{}, false
	}
	return c.Inventory().Complete(jobs)
}

// Proven is Inventory.Proven, and copies nothing if no object is unproven.
func (c Current) Proven(but map[ID]bool) (proven Inventory, changed bool) {
	if _, changed = c.listed.Proven(but); !changed { // a later state has the same mark: see Kept.Defer
		return Inventory{}, false
	}
	return c.Inventory().Proven(but)
}

// with replaces entries that are listed. It copies the later states only.
func (c Current) with(entries []Entry) Current {
	c.later = Inventory{Entries: c.later}.With(entries...).Entries
	return c
}

// is tells whether two are made of the same slices, without comparing their elements.
func (c Current) is(other Current) bool {
	return isSame(c.listed.Entries, other.listed.Entries) && isSame(c.later, other.later)
}

// isSame tells whether two slices are one.
func isSame(a, b []Entry) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
