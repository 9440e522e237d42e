// SPDX-License-Identifier: Apache-2.0

// Package deployment reconciles BundleDeployments: it converts the artifact of
// a source, plans, applies as the tenant, watches health, prunes, and keeps the
// result from drifting.
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
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/watch"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

// state is what one reconcile finds out. Steps record facts here; status.go
// turns them into conditions.
type state struct {
	object   *v1alpha1.BundleDeployment
	before   *v1alpha1.BundleDeployment // as it was when the reconcile began
	stored   *v1alpha1.BundleDeployment // as the API server has it
	owner    inventory.Owner
	home     string              // namespace of the certificates' authority, where it is not the deployment's
	previous inventory.Inventory // what the status lists, and later what the cluster holds
	// unreadable: what the status lists cannot be read, and the deployment goes.
	unreadable bool
	// hashKey makes the hashes in the status, which holds it as wrappedKey.
	hashKey    []byte
	wrappedKey string
	note       note
	noted      bool // note is of this process

	found    watch.Findings // what watches told
	client   *tenant.Client
	local    *tenant.Client // acts as the account on this cluster, also where client is of another one
	remote   string         // the Secret whose kubeconfig the client is of, in words; empty on this cluster
	source   *origin
	artifact *meta.Artifact

	// rejected is the artifact of the source while its revision is rejected and artifact
	// is that of the last healthy one; nil otherwise. lifted: it was until now. givenUp:
	// the revision was rejected in this very reconcile.
	// sourceOwner is then whose the rejected one is.
	rejected    *meta.Artifact
	sourceOwner artifact.Owner
	lifted      bool
	givenUp     bool

	// due: the objects are to be compared with the cluster, not only their health.
	due bool
	// keeping: this is about the last applied revision, while a newer one fails.
	keeping bool
	content *artifact.Content
	inputs  inputs // what the conversion needs beside it
	// capabilities are what a chart was told of the cluster; nil when nothing was.
	capabilities *v1alpha1.Capabilities
	release      func() // gives back the room that desired takes; nil when nothing is held
	// desired are the objects of the revision, once converted.
	desired []*unstructured.Unstructured
	ranks   map[inventory.ID]int // of desired: see apply.Observing
	hooks   []plan.Hook          // of the revision
	// wanted are the certificates that desired mounts and trusts, and issued what
	// became of them; nil while nothing is wanted or certify did not run.
	wanted []convert.Certificate
	issued *issuance
	// requires is what the bundle needs of the cluster, and contains the package that
	// it is a version of.
	requires []convert.Requirement
	contains convert.Package

	substance // of desired
	consent   *consent
	unbegun   before // what the status said before the plan was begun
	// unapproved: the spec waits for an approval, so that only what was approved holds.
	unapproved bool

	plan     *plan.Plan
	observed map[inventory.ID]plan.Live // what the plan was made from
	applied  *apply.Result
	gaps     []watch.Gap // what is not watched
	compared bool        // drift says what differs and is left so
	drift    []string
	mended   *mending // what watches told of, put back without comparing everything
	// waitsFor says what an unfinished apply waits for, such as a CRD that is not
	// established yet.
	waitsFor string
	// hookWaits says which hook is waited for once everything is applied; hookFailed, that
	// one failed just now.
	hookWaits  string
	hookFailed bool
	// hookAt is the hook that an apply waits for.
	hookAt *hookWait
	// hookEntries are what runs of hooks put into the inventory, and nil what they took out.
	hookEntries map[inventory.ID]*inventory.Entry
	phase       *apply.PhaseWait // what it waits for, where that is the health of earlier phases
	health      *health.Report
	// rules say how objects are, and rulesErr why they cannot be read.
	rules    health.Rules
	rulesErr error
	pruned   *apply.Pruned
	// recovered is what was found of an inventory that was lost; nil when it was not.
	recovered *apply.Recovered
	removed   *apply.Removed
	warnings  []string

	// reached names the conditions whose step succeeded in this reconcile.
	reached map[string]bool
	// kept tells how the last applied revision fares while a newer one fails, and
	// careErr why it could not be cared for.
	kept    *state
	careErr error
	// leftOut says, while the last applied revision is kept, which objects of it cannot be
	// compared with the cluster or corrected, and why.
	leftOut []string

	// last are the objects of the snapshot, and lastWanted the certificates that they
	// mounted and trusted; see lastApplied.
	loadOnce   sync.Once
	last       map[inventory.ID]*unstructured.Unstructured
	lastWanted []convert.Certificate
	begun      map[inventory.ID][]begunObject // of the same file, as it was before this reconcile
	// room is how much the inventory may take in the status.
	room inventory.Limit
	// cut: the turn ended with its budget. tried: dry runs of it need not be repeated.
	cut   cut
	tried bool

	now time.Time
}

// close gives back what the state held: room in memory, and the unpacked artifact.
func (s *state) close() {
	s.closeContent()
	s.drop()
	if s.kept != nil {
		s.kept.drop()
	}
}

// drop forgets the contents of the objects, not what was decided about them.
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
		_ = s.content.Close() // what stays is removed at the next start
		s.content = nil
	}
}

// record puts an inventory into the status.
func (s *state) record(current inventory.Inventory) error {
	encoded, err := s.room.Encode(current)
	if err != nil { // too many objects, or one that could not be read back: the same bundle ends in the same way
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

// full tells whether the objects must be compared with the cluster: something
// asked for it, the interval is over, or an object was deleted since. Whoever deletes
// it again and again has it back no sooner than after the pause for retries.
func (s *state) full() bool {
	checked := s.now.Sub(s.note.checked)
	lenient := s.object.Spec.DriftModeOrDefault() != v1alpha1.DriftEnabled
	return !s.noted || s.note.attempt != s.attempt() ||
		s.overInterval() && s.compares() ||
		s.note.missing && !lenient && checked >= s.calmly() ||
		!s.note.renew.IsZero() && !s.now.Before(s.note.renew)
}

// overInterval tells that the interval is over since the last look.
func (s *state) overInterval() bool {
	return s.now.Sub(s.note.checked) >= s.object.Spec.IntervalOrDefault()*9/10
}

// compares tells whether the interval is for comparing the objects with the cluster. Where
// drift is neither repaired nor reported it is for their health only, once everything is
// applied as the spec has it and nothing is going.
func (s *state) compares() bool {
	return s.object.Spec.DriftModeOrDefault() != v1alpha1.DriftDisabled || !s.appliedAsIs() || len(s.note.prune) > 0
}

// attempt is what this reconcile is about.
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

// repeats tells that the same revision failed before for the same spec. Its
// failure stands in the status until an attempt succeeds.
func (s *state) repeats() bool {
	return conditions.IsFalse(s.before, meta.ReadyCondition) && s.sameAsBefore()
}

// sameAsBefore tells that the last reconcile was about the same spec, inputs and revision.
func (s *state) sameAsBefore() bool {
	was := &s.before.Status
	return !s.changedInputs() && was.ObservedGeneration == s.object.Generation && was.LastAttemptedRevision == s.revision()
}
