// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Protection says which existing objects of other owners are adopted. Empty is Prevent.
type Protection string

const (
	// Prevent adopts only orphaned objects.
	Prevent Protection = "Prevent"
	// IfUnmanaged adopts objects without a tool or controller that owns them.
	IfUnmanaged Protection = "IfUnmanaged"
	// None adopts everything except objects that another deployment really owns.
	None Protection = "None"
)

// Claim says whether an existing object may be written, and why.
type Claim int

const (
	// Foreign: it may not; it has another owner.
	Foreign Claim = iota
	// Owned: it is ours already.
	Owned
	// Adoptable: it is adopted from its former owner.
	Adoptable
)

// ClaimOf tells whether an existing object may be written. The first line that holds decides.
//
//	orphaned, and not really another     Adoptable
//	deployment's
//	applied by our manager, and without  Owned      also when an apply was killed before
//	another owner's labels                          it was recorded
//	really another deployment's          Foreign    avoids conflicting field managers
//	None                                 Adoptable
//	IfUnmanaged, without tool or owner   Adoptable
//	else                                 Foreign
func (l Live) ClaimOf(owner inventory.Owner, protection Protection) Claim {
	held := l.HeldByAnother(owner)
	switch {
	case l.Orphaned && !held:
		return Adoptable
	case l.Ours(owner) && !l.Fields.IsZero():
		return Owned
	case held:
		return Foreign
	case protection == None, protection == IfUnmanaged && !l.Controlled(owner):
		return Adoptable
	}
	return Foreign
}

// HeldByAnother tells whether the object is really another deployment's: it applied
// it and labelled it, or it applied it and the labels were removed, or it
// labelled it and all managed fields were removed.
func (l Live) HeldByAnother(owner inventory.Owner) bool {
	switch {
	case !l.TakenBy(owner).IsZero():
		return true
	case l.Orphaned:
		return false
	case !l.Owner.IsZero() && l.Owner != owner && len(l.Managers) == 0:
		return true
	}
	return slices.ContainsFunc(l.Managers, inventory.IsManager)
}

// Controlled tells whether any evidence names another owner of the object.
func (l Live) Controlled(owner inventory.Owner) bool {
	return l.Tool != "" || l.Controller != "" || !l.Owner.IsZero() && l.Owner != owner
}

// Traced tells whether the owner's labels, or an entry of its manager, are on the object.
func (l Live) Traced(owner inventory.Owner) bool { return l.Owner == owner || !l.Fields.IsZero() }
