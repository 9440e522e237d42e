// SPDX-License-Identifier: Apache-2.0

package violation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Rule is the rule that a violation breaks.
type Rule string

const (
	// BreaksDependent: another deployment would lose a package or a kind that it requires.
	BreaksDependent Rule = "BreaksDependent"
	// EmptyRender: the bundle renders no object; nothing is pruned in that case.
	EmptyRender Rule = "EmptyRender"
	// CRDUnsafe: the CRD changes in a way that may break its users.
	CRDUnsafe Rule = "CRDUnsafe"
	// Collision: the object exists and belongs to another owner.
	Collision Rule = "Collision"
	// Unreachable: the API server could not return the object.
	Unreachable Rule = "Unreachable"
	// Duplicate: the bundle contains the object more than once.
	Duplicate Rule = "Duplicate"
	// Guarded: the object approves plans, or requires their approval.
	Guarded Rule = "Guarded"
	// Invalid: the object does not conform to its kind.
	Invalid Rule = "Invalid"
	// KindMissing: the cluster does not serve the kind.
	KindMissing Rule = "KindMissing"
	// NamespaceMissing: the namespace does not exist, or is being deleted.
	NamespaceMissing Rule = "NamespaceMissing"
	// PermissionMissing: the account lacks a permission that the plan needs.
	PermissionMissing Rule = "PermissionMissing"
	// Recursion: the bundle contains the deployment itself, or one of its ancestors.
	Recursion Rule = "Recursion"
	// RequirementMissing: the cluster does not meet a requirement of the bundle.
	RequirementMissing Rule = "RequirementMissing"
)

// Violation is one reason why a plan is not executed.
type Violation struct {
	Rule    Rule
	Object  inventory.ID // zero when it does not concern a single object
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
