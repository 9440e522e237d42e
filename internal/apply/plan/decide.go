// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// decide returns the action for one desired object that was read, or the violation that
// forbids it.
func (in Input) decide(object Object) (Action, *violation.Violation) {
	entry, listed := in.Previous.Get(object.ID)
	action := Action{Object: object, Previous: entry}
	live, exists := in.Live[object.ID]
	if forbidden := in.forbids(object, entry, live); forbidden != nil {
		return Action{}, forbidden
	}
	action.Mark = entry.Mark.Written(!listed && !exists, in.Keeping)
	action.Seen = live.Seen
	if (!exists || live.Deleting) && completed(object, entry) {
		action.Verb, action.Reason = Unchanged, "completed and was deleted"
		return action, nil
	}
	if !exists {
		action.Verb, action.Reason = Create, "does not exist"
		action.OnlyCreate = in.Free[object.ID] && in.Namespaces[object.Namespace] != Absent // what is in a new namespace is new
		if entry.Confirmed() {
			action.Verb, action.Reason = Repair, "was deleted"
		}
		return action, nil
	}
	claim := in.claim(entry, live)
	if claim == ownership.Foreign {
		collision := violation.Collides(live, object.ID, in.Owner)
		return Action{}, &collision
	}
	action.Verb, action.Reason = compare(object, entry, live)
	if action.Verb == Repair && !live.Shared {
		action.At = live.ResourceVersion
	}
	if claim == ownership.Adoptable && !live.Deleting {
		action.Verb, action.Reason = Adopt, in.adopting(live)
	}
	return action, nil
}

// forbids returns the violation that forbids any action on an object; nil for most.
func (in Input) forbids(object Object, entry inventory.Entry, live ownership.Live) *violation.Violation {
	if forbidden := in.Lineage.Forbids(object.ID, live); forbidden != nil {
		return forbidden
	}
	return in.guards(object, in.claim(entry, live))
}

// adopting says why an object is adopted.
func (in Input) adopting(live ownership.Live) string {
	if live.Orphaned {
		return "was left behind by an earlier deployment"
	}
	return fmt.Sprintf("%s, and spec.apply.collisionProtection is %s", live.Holder(in.Owner), in.Protection)
}

// completed tells whether the object is a Job that ran to its end with this content: it
// does not run again because it was deleted, as by its ttlSecondsAfterFinished.
func completed(object Object, entry inventory.Entry) bool {
	return entry.Done && !entry.Begun && entry.Rendered == object.Rendered
}

// compare decides about an object of ours. The first line that holds decides.
//
//	being deleted           Wait
//	never confirmed, or the Update   killed between plan and record
//	last write is not
//	rendered differently    Update
//	our fields differ       Repair
//	UID or generation moved Settle
//	else                    Unchanged
func compare(object Object, entry inventory.Entry, live ownership.Live) (Verb, string) {
	switch {
	case live.Deleting:
		return Wait, ownership.BeingDeleted(live)
	case !entry.Confirmed(), entry.Begun:
		return Update, "was not applied completely"
	case entry.Rendered != object.Rendered:
		return Update, "its content changed"
	case live.Fields.IsZero() && entry.Fields != inventory.Untraceable:
		return Repair, "its managed fields were removed"
	case !live.Fields.IsZero() && live.Fields != entry.Fields:
		return Repair, "its fields were changed"
	case live.Seen != entry.Seen:
		return Settle, "it was written or recreated"
	}
	return Unchanged, ""
}

// claim is ClaimOf for an object that the inventory may list: an object that we applied is ours
// whatever is left on it, unless another deployment really owns it, or it is another
// object: another client created one with another UID in place of ours.
func (in Input) claim(entry inventory.Entry, live ownership.Live) ownership.Claim {
	claim := live.ClaimOf(in.Owner, in.Protection)
	marked := live.Orphaned && claim == ownership.Adoptable
	if entry.Confirmed() && !marked && live.TakenBy(in.Owner).IsZero() && (entry.Seen.SameObject(live.Seen) || live.Traced(in.Owner)) {
		return ownership.Owned
	}
	return claim
}

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
