// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Protection says which existing objects of others are adopted. Empty is Prevent.
type Protection string

const (
	// Prevent adopts nothing but what is marked as orphaned.
	Prevent Protection = "Prevent"
	// IfUnmanaged adopts what no tool and no controller owns.
	IfUnmanaged Protection = "IfUnmanaged"
	// None adopts everything but what another deployment really owns.
	None Protection = "None"
)

// Claim is on what ground an existing object may be written.
type Claim int

const (
	// Foreign: it may not; it is somebody else's.
	Foreign Claim = iota
	// Owned: it is ours already.
	Owned
	// Adoptable: it is taken over from whoever had it.
	Adoptable
)

// ClaimOf tells whether an existing object may be written. The first line that holds decides.
//
//	marked as orphaned, and not really   Adoptable
//	another deployment's
//	applied by our manager, and nobody   Owned      also when an apply was killed before
//	else's labels are on it                         it was recorded
//	really another deployment's          Foreign    two deployments never fight
//	None                                 Adoptable
//	IfUnmanaged, no marks of anybody  Adoptable
//	else                                 Foreign
func (l Live) ClaimOf(owner inventory.Owner, protection Protection) Claim {
	held := l.heldByAnother(owner)
	switch {
	case l.Orphaned && !held:
		return Adoptable
	case l.Ours(owner) && !l.Fields.IsZero():
		return Owned
	case held:
		return Foreign
	case protection == None, protection == IfUnmanaged && !l.controlled(owner):
		return Adoptable
	}
	return Foreign
}

// heldByAnother tells whether the object is really another deployment's: it applied
// it and labelled it, or it applied it and somebody took the labels off, or it
// labelled it and somebody took all managed fields off.
func (l Live) heldByAnother(owner inventory.Owner) bool {
	switch {
	case !l.takenBy(owner).IsZero():
		return true
	case l.Orphaned:
		return false
	case !l.Owner.IsZero() && l.Owner != owner && len(l.Managers) == 0:
		return true
	}
	return slices.ContainsFunc(l.Managers, inventory.IsManager)
}

// controlled tells whether anything says that somebody else owns the object.
func (l Live) controlled(owner inventory.Owner) bool {
	return l.Tool != "" || l.Controller != "" || !l.Owner.IsZero() && l.Owner != owner
}

// claim is ClaimOf for an object that the inventory may list: what we applied is ours
// whatever is left on it, unless another deployment really took it over, or it is another
// object: one of another UID that somebody else created in place of ours.
func (in Input) claim(entry inventory.Entry, live Live) Claim {
	claim := live.ClaimOf(in.Owner, in.Protection)
	marked := live.Orphaned && claim == Adoptable
	if entry.Confirmed() && !marked && live.takenBy(in.Owner).IsZero() && (entry.Seen.SameObject(live.Seen) || live.traced(in.Owner)) {
		return Owned
	}
	return claim
}

// traced tells whether the owner's labels, or an entry of its manager, are on the object.
func (l Live) traced(owner inventory.Owner) bool { return l.Owner == owner || !l.Fields.IsZero() }

// Collides is why an object of somebody else is not written, and the way out.
func (l Live) Collides(id inventory.ID, owner inventory.Owner) Violation {
	violation := Violation{
		Rule: Collision, Object: id,
		Message: fmt.Sprintf("%s exists already and %s", id, l.Holder(owner)),
	}
	switch {
	case l.heldByAnother(owner):
		violation.Remedy = fmt.Sprintf("remove it from one of the two, for two deployments never share an object; "+
			"if the other one is gone for good, take the labels %s and %s off the object and annotate it with %s: \"true\"",
			inventory.LabelDeployment, inventory.LabelNamespace, inventory.AnnotationOrphaned)
	case strings.HasPrefix(l.Tool, helmRelease):
		violation.Remedy = fmt.Sprintf("have the whole release taken over, without a restart, by satchel adopt %s -n %s --delete-former; "+
			"or annotate the object with %s: \"true\" or set spec.collisionProtection to %s, and delete what Helm remembers of the release, lest helm uninstall takes it away",
			owner.Name, owner.Namespace, inventory.AnnotationOrphaned, None)
	case l.controlled(owner):
		violation.Remedy = fmt.Sprintf("have that let go of it; or, to have it taken over, annotate it with %s: \"true\" or set spec.collisionProtection to %s",
			inventory.AnnotationOrphaned, None)
	default:
		violation.Remedy = fmt.Sprintf("remove it; or, to have it taken over, annotate it with %s: \"true\" or set spec.collisionProtection to %s",
			inventory.AnnotationOrphaned, IfUnmanaged)
	}
	return violation
}
