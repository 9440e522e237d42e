// SPDX-License-Identifier: Apache-2.0

// Package deployment reconciles BundleDeployments. It declares the steps, gives each of them the results that it reads, and
// decides when the next reconcile is due; the work is in the stages: resolve, render, decide, deliver and settle.
package deployment

import (
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// state holds what one reconcile has found out: the result of each stage. Only the reconciler sees all of it; a stage
// gets the results that it reads.
type state struct {
	stage.Subject
	listed stage.Listing
	note   stage.Note
	held   *stage.HeldStatus // the status that the deployment had in memory only; nil for none

	resolved  stage.Resolved
	rendered  stage.Rendered
	decided   stage.Decided
	delivered stage.Delivered
	settled   stage.Settled

	// kept is the state of the last applied revision while a newer one fails, and keepErr why its drift could not be corrected.
	// comparisonSkipped tells that nothing has changed it since it was compared, so that it was not again.
	kept              *state
	keepErr           error
	comparisonSkipped bool
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

// old tells that the object from the cache is older than the last write of this controller: its inventory would be outdated.
func (s *state) old() bool {
	return pipeline.OlderVersion(s.Object.ResourceVersion, s.note.Version)
}
