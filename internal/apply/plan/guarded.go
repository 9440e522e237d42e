// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// guards says why an object must not be in any bundle, whatever the permissions of its account; nil
// when it may. Approvals, and the labels of a Namespace that require approval or signatures, are for users and
// their tools: otherwise a bundle could approve itself.
func (in Input) guards(object Object, claim ownership.Claim) *violation.Violation {
	if ownership.IsApproval(object.ID) {
		return &violation.Violation{
			Rule: violation.Guarded, Object: object.ID,
			Message: fmt.Sprintf("%s approves or denies a plan, which no bundle may do", object.ID),
			Remedy:  "take it out of the bundle, and create it in another way, such as satchel approve",
		}
	}
	if !ownership.IsNamespace(object.ID) {
		return nil
	}
	if labels := ownership.PodSecurity(object.Desired); !in.PodSecurity && !in.Keeping && len(labels) > 0 {
		return &violation.Violation{
			Rule: violation.Guarded, Object: object.ID,
			Message: fmt.Sprintf("%s has the labels %s, which decide what Pods may do there", object.ID, strings.Join(labels, ", ")),
			Remedy:  "set spec.apply.podSecurityLabels, have each escalation approved by spec.approval.mode OnEscalation, or take the labels out of the bundle",
		}
	}
	for _, guard := range in.Live[object.ID].Guards {
		_, changes := object.Desired.GetLabels()[guard.Name]
		if guard.On(object.Desired) || !changes && !guard.Ours && claim != ownership.Adoptable {
			continue
		}
		return &violation.Violation{
			Rule: violation.Guarded, Object: object.ID,
			Message: fmt.Sprintf("%s has the label %s, and the bundle would remove it", object.ID, guard),
			Remedy:  "give it the same label in the bundle, or have an administrator remove the label first",
		}
	}
	return nil
}

// guarded are the violations for hooks with a guard label: hooks are deleted before they run again.
func (in Input) guarded() []violation.Violation {
	var violations []violation.Violation
	for _, hook := range in.Hooks {
		found, guard := in.guards(hook.Object, ownership.Owned), in.Live[hook.ID].GuardedNamespace(hook.ID)
		switch {
		case found != nil:
			violations = append(violations, *found)
		case guard != "":
			violations = append(violations, violation.Violation{
				Rule: violation.Guarded, Object: hook.ID,
				Message: fmt.Sprintf("%s has the label %s, and as a hook the bundle would delete it", hook.ID, guard),
				Remedy:  "take the hook out of the bundle, or have an administrator remove the label first",
			})
		}
	}
	return violations
}
