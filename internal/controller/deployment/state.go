// SPDX-License-Identifier: Apache-2.0

// Package deployment reconciles BundleDeployments: it converts the artifact of
// a source, plans, applies as the tenant, watches health, prunes, and corrects drift.
package deployment

import (
	"slices"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

// state holds the facts of one reconcile. Steps record facts here; status.go turns them
// into conditions.
type state struct {
	object   *v1alpha1.BundleDeployment
	before   *v1alpha1.BundleDeployment // as it was when the reconcile began
	stored   *v1alpha1.BundleDeployment // as the API server has it
	owner    inventory.Owner
	home     string              // namespace of the CA, if it is not the deployment's
	previous inventory.Inventory // what the status lists, and later what the cluster holds
	// unreadable: the inventory in the status cannot be read, and the deployment is being
	// deleted.
	unreadable bool
	// hashKey makes the hashes in the status, which holds it as wrappedKey.
	hashKey    []byte
	wrappedKey string
	note       note
	noted      bool // note is of this process

	found    drift.Findings // what watches told
	client   *tenant.Client
	local    *tenant.Client // impersonates the ServiceAccount on this cluster, also if client is for another one
	remote   string         // the Secret with the kubeconfig of the client, as shown in messages; empty on this cluster
	source   *origin
	artifact *meta.Artifact

	// rejected is the artifact of the source while its revision is rejected and artifact
	// is that of the last healthy one; nil otherwise. sourceOwner is the owner of the
	// rejected one. lifted: the rejection ended in this reconcile. rejectedNow: the
	// revision was rejected in this reconcile.
	rejected    *meta.Artifact
	sourceOwner artifact.Owner
	lifted      bool
	rejectedNow bool

	// due: the objects have to be compared with the cluster, not only their health.
	due bool
	// keeping: this state is for drift correction of the last applied revision, while a
	// newer one fails.
	keeping bool
	content *artifact.Content
	inputs  inputs // Secrets and ConfigMaps for the conversion
	// capabilities of the cluster that a chart asked for; nil for none.
	capabilities *v1alpha1.Capabilities
	release      func() // releases the room of desired; nil when none is held
	// desired are the objects of the revision, once converted.
	desired []*unstructured.Unstructured
	ranks   map[inventory.ID]int // of desired: see apply.Observing
	hooks   []plan.Hook          // of the revision
	// wanted are the certificates that desired mounts and trusts, and issued the result
	// of certify; nil while none is wanted or certify did not run.
	wanted []convert.Certificate
	issued *issuance
	// requires are the requirements of the bundle, and contains its package.
	requires []convert.Requirement
	contains convert.Package

	substance // of desired
	consent   *consent
	unbegun   before // the status before the plan was begun
	// unapproved: the spec waits for an approval, so only the approved settings apply.
	unapproved bool

	plan     *plan.Plan
	observed map[inventory.ID]plan.Live // the live objects that the plan was made from
	applied  *apply.Result
	gaps     []drift.Gap // collections that are not watched
	compared bool        // drift lists differences that are not corrected
	drift    []string
	repaired *driftRepair // the repair of objects reported by watches, without a full comparison
	// waitsFor says what an unfinished apply waits for, such as a CRD that is not
	// established yet.
	waitsFor string
	// hookWaits names the hook that is waited for once everything is applied; hookFailed:
	// one failed in this reconcile.
	hookWaits  string
	hookFailed bool
	// hookAt is the hook that an apply waits for.
	hookAt *hookWait
	// hookEntries are the inventory entries that hooks added; nil for those that they
	// removed.
	hookEntries map[inventory.ID]*inventory.Entry
	phase       *apply.PhaseWait // the earlier phases that must become healthy first
	health      *health.Report
	// rules evaluate the health of objects; rulesErr says why they are invalid.
	rules    health.Rules
	rulesErr error
	pruned   *apply.Pruned
	// recovered is the rebuilt part of a lost inventory; nil if it was not lost.
	recovered *apply.Recovered
	removed   *apply.Removed
	warnings  []string

	// reached names the conditions of steps that succeeded in this reconcile.
	reached map[string]bool
	// kept is the state of the last applied revision while a newer one fails, and
	// keepErr why its drift could not be corrected.
	kept    *state
	keepErr error
	// leftOut lists the objects of the last applied revision that cannot be compared with
	// the cluster or corrected, and why.
	leftOut []string

	// last are the objects of the snapshot, and lastWanted the certificates that they
	// mounted and trusted; see lastApplied.
	loadOnce   sync.Once
	last       map[inventory.ID]*unstructured.Unstructured
	lastWanted []convert.Certificate
	begun      map[inventory.ID][]begunObject // from the same file, before this reconcile
	// room is how much the inventory may take in the status.
	room inventory.Limit
	// cut: the turn ended because its budget was used up. tried: some dry runs passed and
	// need not be repeated.
	cut   cut
	tried bool

	now time.Time
}

// close releases the memory room and the unpacked artifact.
func (s *state) close() {
	s.closeContent()
	s.drop()
	if s.kept != nil {
		s.kept.drop()
	}
}

// drop releases the contents of the objects, but keeps the decisions.
func (s *state) drop() {
	clear(s.desired)
	if s.plan != nil {
		for i := range s.plan.Stages {
			for j := range s.plan.Stages[i].Actions {
				s.plan.Stages[i].Actions[j].Desired = nil
			}
		}
	}
	if s.release != nil {
		s.release()
		s.release = nil
	}
}

// closeContent removes the unpacked artifact.
func (s *state) closeContent() {
	if s.content != nil {
		_ = s.content.Close() // leftover files are removed at the next start
		s.content = nil
	}
}

// record puts an inventory into the status.
func (s *state) record(current inventory.Inventory) error {
	encoded, err := s.room.Encode(current)
	if err != nil { // too many objects, or one that could not be read back: the same bundle fails again
		return failure{reason: v1alpha1.ReasonPlanRefused, stalled: true, err: err}
	}
	encoded.Recovered = s.object.Status.Inventory != nil && s.object.Status.Inventory.Recovered
	s.previous, s.object.Status.Inventory = current, encoded
	return nil
}

// fits tells whether the inventory of a plan can be stored once all of it is applied.
func (s *state) fits(planned inventory.Inventory) error {
	if s.keeping {
		return nil // it was stored before
	}
	if err := s.room.CheckPlanned(planned); err != nil {
		return failure{reason: v1alpha1.ReasonPlanRefused, stalled: true, err: err}
	}
	return nil
}

// revision of the artifact that is installed or tried.
func (s *state) revision() string {
	if s.artifact == nil {
		return ""
	}
	return s.artifact.Revision
}

// did records that the step behind a condition succeeded.
func (s *state) did(condition string) {
	if s.reached == nil {
		s.reached = map[string]bool{}
	}
	s.reached[condition] = true
}

// full tells whether the objects must be compared with the cluster: it was requested,
// the interval is over, or an object was deleted since. An object that is deleted again
// and again is recreated only after the retry interval.
func (s *state) full() bool {
	checked := s.now.Sub(s.note.checked)
	leavesDrift := s.object.Spec.DriftModeOrDefault() != v1alpha1.DriftEnabled
	return !s.noted || s.note.attempt != s.attempt() ||
		s.overInterval() && s.compares() ||
		s.note.missing && !leavesDrift && checked >= s.backgroundRetryInterval() ||
		!s.note.renew.IsZero() && !s.now.Before(s.note.renew)
}

// overInterval tells that the interval since the last comparison is over.
func (s *state) overInterval() bool {
	return s.now.Sub(s.note.checked) >= s.object.Spec.IntervalOrDefault()*9/10
}

// compares tells whether the objects are compared with the cluster at the interval. If
// drift is neither corrected nor reported, only their health is checked, once everything
// is applied and pruned.
func (s *state) compares() bool {
	return s.object.Spec.DriftModeOrDefault() != v1alpha1.DriftDisabled || !s.appliedAsIs() || len(s.note.prune) > 0
}

// attempt identifies the input of this reconcile.
func (s *state) attempt() attempt {
	a := attempt{generation: s.object.Generation, requested: requested(s.object), inputs: s.inputs.digest}
	if s.artifact != nil {
		a.revision, a.digest = s.artifact.Revision, s.artifact.Digest
	}
	return a
}

// writes tells whether the plan sends anything to an object.
func (s *state) writes() bool {
	return s.plan != nil && slices.ContainsFunc(s.plan.Actions(), plan.Action.Writes)
}

// repeats tells that the same revision failed before with the same spec. Its failure
// stays in the status until an attempt succeeds.
func (s *state) repeats() bool {
	return conditions.IsFalse(s.before, meta.ReadyCondition) && s.sameAsBefore()
}

// sameAsBefore tells that the last reconcile had the same spec, inputs and revision.
func (s *state) sameAsBefore() bool {
	was := &s.before.Status
	return !s.changedInputs() && was.ObservedGeneration == s.object.Generation && was.LastAttemptedRevision == s.revision()
}
