// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/autoscaling"
	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// Input is everything that a plan depends on.
type Input struct {
	Owner    inventory.Owner
	Previous inventory.Inventory

	// Desired are the completed objects; Missing those of a kind that is not served.
	Desired []Object
	// Hooks are the completed objects that run once.
	Hooks   []HookObject
	Missing []MissingKind
	// Skipped are objects of optional kinds that are not served: they are left out.
	Skipped []inventory.ID
	// Invalid objects could not be completed; the violations say why.
	Invalid []violation.Violation

	// CreateNamespace is created when absent, and never deleted. Empty: none.
	CreateNamespace string

	// Withheld are objects that left the bundle because of files that are left out of it, such as links, with the names of these files:
	// they are neither deleted nor released.
	Withheld map[inventory.ID][]string

	// Keeping: all desired objects were applied before, and a newer revision
	// fails: nothing is deleted or released.
	Keeping bool

	Rules
	Observed
}

// Rules are what a deployment, its bundle and the administrator permit and demand.
type Rules struct {
	// Protection says which existing objects of other owners are adopted; empty is Prevent.
	Protection ownership.Protection

	// PodSecurity: Namespaces may carry labels of pod-security.kubernetes.io.
	PodSecurity bool

	// Lineage are deployments that must not be among the objects.
	Lineage violation.Lineage

	// Pruning says how objects are deleted or released.
	Pruning pruning.Policy

	// UpgradeSafety says how to handle changes of CRDs that could break their
	// users. Exempt are the names of CRDs that are not judged.
	UpgradeSafety Enforcement
	Exempt        []string
	// Returning: this revision was healthy before a newer one. Unsafe CRDs are kept, except those in Unfit.
	Returning bool

	// RequirementsPolicy says how to handle Requirements of the bundle that the Facts
	// do not meet.
	RequirementsPolicy Enforcement
	Requirements       []requirement.Requirement
}

// Observed is what was read from the cluster.
type Observed struct {
	// Live holds the existing objects, desired ones and those of the inventory. An object
	// in none of Live, Unreadable and Unconfirmed does not exist.
	Live map[inventory.ID]ownership.Live
	// Free are desired objects that did not exist up to a second before: they are only created, never written where they exist.
	Free       map[inventory.ID]bool
	Unreadable map[inventory.ID]string // the reason
	// Unconfirmed are objects of the inventory with a kind that is not served at the moment, and the
	// reason: it is not known yet whether the kind is gone.
	Unconfirmed map[inventory.ID]string

	// Kinds maps the kinds of the inventory. A kind that is missing here and has
	// neither Unreadable nor Unconfirmed objects is not served any more.
	Kinds map[schema.GroupKind]Kind

	// Namespaces holds the presence of the namespaces of desired objects.
	Namespaces map[string]Presence

	// Judgements are about the CRDs of ToJudge, each against the live one. A CRD that
	// is missing here was deleted meanwhile.
	Judgements map[inventory.ID]crdsafety.Judgement
	// Unused are CRDs of Judgements without a single custom resource on the cluster. One that is missing here may have some.
	Unused map[inventory.ID]bool
	// Unlisted says why it is not known whether one of Judgements has custom resources.
	Unlisted map[inventory.ID]string
	// Unfit says why a revision cannot work with one of the live CRDs that are judged.
	Unfit map[inventory.ID]string

	// Scaling holds objects with fields that autoscalers may set from now on, or set until now; Autoscalers are those on the
	// cluster in their namespaces.
	Scaling     map[inventory.ID]autoscaling.Sight
	Autoscalers []autoscaling.Autoscaler

	// Facts are what Requirements are compared with.
	Facts requirement.Facts
}

// Enforcement says how to handle a breach of a rule. Empty is EnforcementNone.
type Enforcement string

const (
	// Enforce refuses the plan.
	Enforce Enforcement = "Enforce"
	// Warn reports it as a warning.
	Warn Enforcement = "Warn"
	// EnforcementNone does not check.
	EnforcementNone Enforcement = "None"
)

// MissingKind is an object of a kind that the cluster does not know.
type MissingKind struct {
	inventory.ID
	Version string
	Served  []string // versions of the kind that are served instead
}

// Presence of a namespace.
type Presence int

const (
	// Unknown: the ServiceAccount may not read it.
	Unknown Presence = iota
	// Present: it exists and accepts objects.
	Present
	// Absent: it does not exist.
	Absent
	// Terminating: it is being deleted and accepts nothing.
	Terminating
)
