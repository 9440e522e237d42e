// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// decide says what happens to one desired object that could be looked at, or why
// it must not happen.
func (in Input) decide(object Object) (Action, *Violation) {
	entry, _ := in.Previous.Get(object.ID)
	action := Action{Object: object, Previous: entry}
	live, exists := in.Live[object.ID]
	if !exists {
		action.Verb, action.Reason = Create, "does not exist"
		if entry.Confirmed() {
			action.Verb, action.Reason = Repair, "was deleted"
		}
		return action, nil
	}
	if violation := in.collision(object.ID, entry, live); violation != nil {
		return Action{}, violation
	}
	action.Verb, action.Reason = compare(object, entry, live)
	action.Orphaned = live.Orphaned && action.Writes()
	return action, nil
}

// collision tells whether an existing object is somebody else's.
//
//	applied by us before      ours, unless another deployment really took it over
//	applied by our manager,   ours: an apply was killed before it was recorded
//	and nobody else's labels
//	marked as orphaned        taken up
//	else                      a collision
func (in Input) collision(id inventory.ID, entry inventory.Entry, live Live) *Violation {
	taken := !live.takenBy(in.Owner).IsZero()
	switch {
	case entry.Confirmed() && !taken,
		live.Ours(in.Owner) && !live.Fields.IsZero(),
		live.Orphaned && !taken:
		return nil
	}
	return &Violation{
		Rule: Collision, Object: id,
		Message: fmt.Sprintf("%s exists already and %s", id, live.holder(in.Owner)),
		Remedy: fmt.Sprintf("remove it from one of the two, or mark the existing object with the annotation %s to have it taken over",
			inventory.AnnotationOrphaned),
	}
}

// compare tells what became of an object that is ours. The first line that holds decides.
//
//	being deleted           Wait
//	left behind earlier     Update   it is taken up
//	never confirmed         Update   planned, or killed between write and record
//	rendered differently    Update
//	our fields differ       Repair
//	UID or generation moved Settle
//	else                    Unchanged
func compare(object Object, entry inventory.Entry, live Live) (Verb, string) {
	switch {
	case live.Deleting:
		return Wait, BeingDeleted(live)
	case live.Orphaned:
		return Update, "was left behind by an earlier deployment"
	case !entry.Confirmed():
		return Update, "was not applied completely"
	case entry.Rendered != object.Rendered:
		return Update, "its content changed"
	case live.Fields.IsZero() && entry.Fields != inventory.Untraceable:
		return Repair, "its managed fields were removed"
	case !live.Fields.IsZero() && live.Fields != entry.Fields:
		return Repair, "its fields were changed"
	case live.Seen != entry.Seen:
		return Settle, "it was written or created anew"
	}
	return Unchanged, ""
}
