// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
)

// unreadable are the desired objects that the account may not look at.
func (in Input) unreadable(desired []Object) []Object {
	return slices.DeleteFunc(slices.Clone(desired), func(o Object) bool {
		_, found := in.Unreadable[o.ID]
		return !found
	})
}

// unseenEach says of each object that it could not be looked at.
func (in Input) unseenEach(objects []Object) []Violation {
	violations := make([]Violation, 0, len(objects))
	for _, object := range objects {
		violations = append(violations, Violation{
			Rule: PermissionMissing, Object: object.ID,
			Message: fmt.Sprintf("%s cannot be looked at: %s", object.ID, in.Unreadable[object.ID]),
		})
	}
	return violations
}

// unseen forbids a plan that knows nothing of some objects. One violation says it of
// all: which rights are lacking, and on what, is told together with all others.
func unseen(objects []Object) []Violation {
	if len(objects) == 0 {
		return nil
	}
	what := objects[0].ID.String()
	if more := len(objects) - 1; more > 0 {
		what = fmt.Sprintf("%s and %d more", what, more)
	}
	return []Violation{{
		Rule:    PermissionMissing,
		Message: "the account may not look at " + what,
		Remedy:  "grant it the right to get them",
	}}
}
