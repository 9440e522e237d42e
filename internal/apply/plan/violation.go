// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Rule names what a violation offends.
type Rule string

const (
	// EmptyRender: the bundle renders no object; nothing is pruned for that.
	EmptyRender Rule = "EmptyRender"
	// CRDUnsafe: the CRD changes in a way that what uses it may not survive.
	CRDUnsafe Rule = "CRDUnsafe"
	// Collision: the object exists and belongs to somebody else.
	Collision Rule = "Collision"
	// Unreachable: the API server could not say anything about the object.
	Unreachable Rule = "Unreachable"
	// Duplicate: the bundle contains the object more than once.
	Duplicate Rule = "Duplicate"
	// Guarded: the object approves plans, or demands that they are approved.
	Guarded Rule = "Guarded"
	// Invalid: the object is not what its kind says.
	Invalid Rule = "Invalid"
	// KindMissing: the cluster does not serve the kind.
	KindMissing Rule = "KindMissing"
	// NamespaceMissing: the namespace does not exist, or is being deleted.
	NamespaceMissing Rule = "NamespaceMissing"
	// PermissionMissing: the account may not do what the plan needs.
	PermissionMissing Rule = "PermissionMissing"
	// Recursion: the bundle contains the deployment itself, or one that brought it.
	Recursion Rule = "Recursion"
	// RequirementMissing: the cluster lacks what the bundle says it needs.
	RequirementMissing Rule = "RequirementMissing"
)

// Violation is one reason why a plan is not carried out.
type Violation struct {
	Rule    Rule
	Object  inventory.ID // zero when no single object is meant
	Message string       // what is wrong
	Remedy  string       // what to do
}

// String is the violation for people.
func (v Violation) String() string {
	if v.Remedy == "" {
		return v.Message
	}
	return v.Message + ": " + v.Remedy
}

// SortViolations orders them by rule, object and message and drops repetitions.
func SortViolations(violations []Violation) []Violation {
	slices.SortFunc(violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), a.Object.Compare(b.Object), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(violations)
}
