// SPDX-License-Identifier: Apache-2.0

// Package deployment reconciles BundleDeployments: it converts the artifact of
// a source, plans, applies as the tenant, watches health, prunes, and corrects drift.
package deployment

import (
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// state holds the facts of one reconcile: the deployment, and the result of each stage. A stage
// records its facts in its own result; status.go turns them into conditions.
type state struct {
	subject
	listed   listing
	note     note
	noted    bool // note is of this process
	snapshot *snapshot.Reader

	resolved  resolved
	rendered  rendered
	decided   decided
	delivered delivered
	settled   settled

	warnings []string
	// reached names the conditions of steps that succeeded in this reconcile.
	reached map[string]bool
	// kept is the state of the last applied revision while a newer one fails, and
	// keepErr why its drift could not be corrected.
	kept    *state
	keepErr error
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
	clear(s.rendered.desired)
	if s.decided.plan != nil {
		for i := range s.decided.plan.Stages {
			for j := range s.decided.plan.Stages[i].Actions {
				s.decided.plan.Stages[i].Actions[j].Desired = nil
			}
		}
	}
	if s.rendered.release != nil {
		s.rendered.release()
		s.rendered.release = nil
	}
}

// closeContent removes the unpacked artifact.
func (s *state) closeContent() {
	if s.rendered.content != nil {
		_ = s.rendered.content.Close() // leftover files are removed at the next start
		s.rendered.content = nil
	}
}

// record puts an inventory into the status.
func (s *state) record(current inventory.Inventory) error {
	encoded, err := s.room.Encode(current)
	if err != nil { // too many objects, or one that could not be read back: the same bundle fails again
		return failure.Error{Reason: v1alpha1.ReasonPlanRefused, Stalled: true, Err: err}
	}
	encoded.Recovered = s.object.Status.Inventory != nil && s.object.Status.Inventory.Recovered
	s.listed.inventory, s.object.Status.Inventory = current, encoded
	return nil
}

// fits tells whether the inventory of a plan can be stored once all of it is applied.
func (s *state) fits(planned inventory.Inventory) error {
	if s.keeping {
		return nil // it was stored before
	}
	if err := s.room.CheckPlanned(planned); err != nil {
		return failure.Error{Reason: v1alpha1.ReasonPlanRefused, Stalled: true, Err: err}
	}
	return nil
}

// revision of the artifact that is installed or tried.
func (s *state) revision() string {
	if s.resolved.artifact == nil {
		return ""
	}
	return s.resolved.artifact.Revision
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
		s.note.health.missing && !leavesDrift && checked >= s.backgroundRetryInterval() ||
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
	return s.object.Spec.DriftModeOrDefault() != v1alpha1.DriftDisabled || !s.appliedAsIs() || len(s.note.planned.prune) > 0
}

// attempt identifies the input of this reconcile.
func (s *state) attempt() attempt {
	a := attempt{generation: s.object.Generation, requested: pipeline.Requested(s.object), inputs: s.resolved.inputs.digest}
	if s.resolved.artifact != nil {
		a.revision, a.digest = s.resolved.artifact.Revision, s.resolved.artifact.Digest
	}
	return a
}

// writes tells whether the plan sends anything to an object.
func (s *state) writes() bool {
	return s.decided.plan != nil && slices.ContainsFunc(s.decided.plan.Actions(), plan.Action.Writes)
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
