// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// unreadable are the desired objects that the ServiceAccount may not read.
func (in Input) unreadable(desired []Object) (objects []Object) {
	for _, object := range desired {
		if _, found := in.Unreadable[object.ID]; found {
			objects = append(objects, object)
		}
	}
	return objects
}

// unseenEach returns a violation for each object that could not be read.
func (in Input) unseenEach(objects []Object) []violation.Violation {
	violations := make([]violation.Violation, 0, len(objects))
	for _, object := range objects {
		violations = append(violations, violation.Violation{
			Rule: violation.PermissionMissing, Object: object.ID,
			Message: fmt.Sprintf("%s cannot be looked at: %s", object.ID, in.Unreadable[object.ID]),
		})
	}
	return violations
}

// unseen forbids a plan with unreadable objects. It is one violation for
// all of them: the preflight reports the missing permissions together with all others.
func unseen(objects []Object) []violation.Violation {
	if len(objects) == 0 {
		return nil
	}
	what := objects[0].ID.String()
	if more := len(objects) - 1; more > 0 {
		what = fmt.Sprintf("%s and %d more", what, more)
	}
	return []violation.Violation{{
		Rule:    violation.PermissionMissing,
		Message: "the ServiceAccount may not look at " + what,
		Remedy:  "grant it permission to get them",
	}}
}
