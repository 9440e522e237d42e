// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

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
// it and labelled it, or it applied it and the labels were removed, or it
// labelled it and all managed fields were removed.
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

// controlled tells whether any evidence names another owner of the object.
func (l Live) controlled(owner inventory.Owner) bool {
	return l.Tool != "" || l.Controller != "" || !l.Owner.IsZero() && l.Owner != owner
}

// claim is ClaimOf for an object that the inventory may list: an object that we applied is ours
// whatever is left on it, unless another deployment really owns it, or it is another
// object: another client created one with another UID in place of ours.
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

// Collides is the violation for an object of another owner, with the remedies.
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
		violation.Remedy = fmt.Sprintf("adopt the whole release, without a restart, with satchel adopt %s -n %s --delete-former; "+
			"or annotate the object with %s: \"true\" or set spec.collisionProtection to %s, and delete Helm's records of the release, so that helm uninstall does not delete the object",
			owner.Name, owner.Namespace, inventory.AnnotationOrphaned, None)
	case l.controlled(owner):
		violation.Remedy = fmt.Sprintf("have that owner release it; or, to adopt it, annotate it with %s: \"true\" or set spec.collisionProtection to %s",
			inventory.AnnotationOrphaned, None)
	default:
		violation.Remedy = fmt.Sprintf("remove it; or, to adopt it, annotate it with %s: \"true\" or set spec.collisionProtection to %s",
			inventory.AnnotationOrphaned, IfUnmanaged)
	}
	return violation
}
