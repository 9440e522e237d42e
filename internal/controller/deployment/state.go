// SPDX-License-Identifier: Apache-2.0

// Package deployment reconciles BundleDeployments: it converts the artifact of
// a source, plans, applies as the tenant, watches health, prunes, and corrects drift.
package deployment

import (
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// state holds what one reconcile has found out: the result of each stage. Only the reconciler sees all of it; a stage
// gets the results that it reads.
type state struct {
	stage.Subject
	listed stage.Listing
	note   stage.Note

	resolved  stage.Resolved
	rendered  stage.Rendered
	decided   stage.Decided
	delivered stage.Delivered
	settled   stage.Settled

	// kept is the state of the last applied revision while a newer one fails, and
	// keepErr why its drift could not be corrected.
	kept    *state
	keepErr error
}

// close releases the memory room and the unpacked artifact.
func (s *state) close() {
	s.rendered.Close()
	s.drop()
	if s.kept != nil {
		s.kept.drop()
	}
}

// drop releases the contents of the objects, but keeps the decisions.
func (s *state) drop() {
	s.rendered.Drop()
	s.decided.Drop()
}

// old tells that the object from the cache is older than the last write of this
// controller: its inventory would be outdated.
func (s *state) old() bool {
	return pipeline.OlderVersion(s.Object.ResourceVersion, s.note.Version)
}

// full tells whether the objects must be compared with the cluster: it was requested,
// the interval is over, or an object was deleted since. An object that is deleted again
// and again is recreated only after the retry interval.
func (s *state) full() bool {
	checked := s.Now.Sub(s.note.Checked)
	leavesDrift := s.Object.Spec.DriftModeOrDefault() != v1alpha1.DriftEnabled
	return !s.note.Known || s.note.Attempt != s.resolved.Attempt(&s.Subject) ||
		s.overInterval() && s.compares() ||
		s.note.Health.Missing && !leavesDrift && checked >= s.BackgroundRetryInterval() ||
		!s.note.Renew.IsZero() && !s.Now.Before(s.note.Renew)
}

// overInterval tells that the interval since the last comparison is over.
func (s *state) overInterval() bool {
	return s.Now.Sub(s.note.Checked) >= s.Object.Spec.IntervalOrDefault()*9/10
}

// compares tells whether the objects are compared with the cluster at the interval. If
// drift is neither corrected nor reported, only their health is checked, once everything
// is applied and pruned.
func (s *state) compares() bool {
	return s.Object.Spec.DriftModeOrDefault() != v1alpha1.DriftDisabled || !s.resolved.AppliedAsIs(&s.Subject) || len(s.note.Planned.Prune) > 0
}

// repeats tells that the same revision failed before with the same spec. Its failure
// stays in the status until an attempt succeeds.
func (s *state) repeats() bool {
	return conditions.IsFalse(s.Before, meta.ReadyCondition) && s.resolved.SameAsBefore(&s.Subject)
}
