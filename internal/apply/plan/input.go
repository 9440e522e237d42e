// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
)

// Input is everything a plan depends on.
type Input struct {
	Owner    inventory.Owner
	Previous inventory.Inventory

	// Desired are the completed objects; Missing those whose kind nobody serves.
	Desired []Object
	// Hooks are the completed objects that run once.
	Hooks   []HookObject
	Missing []MissingKind
	// Skipped are objects of optional kinds that nobody serves: they are left out.
	Skipped []inventory.ID
	// Invalid objects could not be completed; the violations say why.
	Invalid []Violation

	// Live holds what exists, of desired objects and of the inventory. An object
	// in none of Live, Unreadable and Unconfirmed does not exist.
	Live       map[inventory.ID]Live
	Unreadable map[inventory.ID]string // why, in words
	// Unconfirmed are objects of the inventory whose kind is not served at the moment, with the
	// reason in words: whether it is gone is not known yet.
	Unconfirmed map[inventory.ID]string

	// Kinds maps what the inventory lists. A kind that is missing here and whose
	// objects are neither Unreadable nor Unconfirmed is not served any more.
	Kinds map[schema.GroupKind]Kind

	// Namespaces tells about the namespaces that desired objects go to.
	Namespaces map[string]Presence

	// CreateNamespace is created when absent, and never deleted. Empty: none.
	CreateNamespace string

	// Keeping: what is desired was applied before, all of it, and a newer revision
	// fails: nothing is let go.
	Keeping bool

	// Protection says which existing objects of others are adopted.
	Protection Protection

	// PodSecurity: Namespaces may carry labels of pod-security.kubernetes.io.
	PodSecurity bool

	// Lineage are deployments that must not be among the objects.
	Lineage Lineage

	// Pruning says how objects are let go.
	Pruning Pruning

	// UpgradeSafety says what becomes of changes of CRDs that could break their
	// users. Exempt are the names of CRDs that are not judged.
	UpgradeSafety Enforcement
	Exempt        []string
	// Judgements are about the CRDs of ToJudge, each against the live one. A CRD that
	// is missing here went meanwhile.
	Judgements map[inventory.ID]crdsafety.Judgement

	// RequirementsPolicy says what becomes of Requirements that the Facts do not meet.
	RequirementsPolicy Enforcement
	Requirements       []Requirement
	Facts              Facts
}

// Enforcement says what becomes of what offends a rule. Empty is EnforcementNone.
type Enforcement string

const (
	// Enforce refuses the plan.
	Enforce Enforcement = "Enforce"
	// Warn lets it pass with a warning.
	Warn Enforcement = "Warn"
	// EnforcementNone does not look.
	EnforcementNone Enforcement = "None"
)

// MissingKind is an object whose kind the cluster does not know.
type MissingKind struct {
	inventory.ID
	Version string
	Served  []string // versions of the kind that are served instead
}

// Presence of a namespace.
type Presence int

const (
	// Unknown: the account may not look.
	Unknown Presence = iota
	// Present and accepting objects.
	Present
	// Absent: it does not exist.
	Absent
	// Terminating: it is being deleted and accepts nothing.
	Terminating
)
