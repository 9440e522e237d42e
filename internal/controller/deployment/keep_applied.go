// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/controller/budget"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/render"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// keepApplied corrects drift of the last applied revision, and checks its health, while a
// newer one cannot be applied, or while some of its objects cannot be planned. A problem
// with one object does not affect the others.
func (r *Reconciler) keepApplied(ctx context.Context, s *state, err error) {
	if pipeline.IsStale(err) || !declared(err).keepsApplied {
		return // decided on a stale copy, or failed where the last revision is touched already
	}
	if s.Object.Status.LastAppliedRevision == "" || s.resolved.Access.Client == nil {
		return
	}
	if errors.Is(err, render.ErrPending) && s.applying() {
		return // it goes on in a moment, and would find undone what it did
	}
	last, found, readErr := snapshot.Read(r.Snapshots, string(s.Object.UID))
	if readErr == nil && !found {
		readErr = errors.New("what was applied last is not in the cache any more")
	}
	if readErr != nil {
		s.keepErr = readErr
		return
	}
	kept := &state{
		Subject: s.Subject, listed: stage.Listing{Inventory: s.listed.Inventory},
		resolved: stage.Resolved{Due: true, Unapproved: approval.AwaitsApproval(err)},
		rendered: stage.Rendered{Desired: last.Objects, Wanted: last.Certificates},
	}
	kept.Keeping, kept.Snapshot = true, snapshot.NewReader(r.Snapshots, string(s.Object.UID))
	s.kept = kept
	if kept.resolved.Access.Client, s.keepErr = r.keepingClient(ctx, s, err); s.keepErr != nil {
		return
	}
	s.drop() // or both states would wait for the room that the other one holds
	if kept.rendered.Release, s.keepErr = r.renderer.Hold(kept.Object, render.ValuesOf(kept.rendered.Desired)); s.keepErr != nil {
		return
	}
	turn, cancel := r.beginTurn(ctx, s)
	defer cancel()
	s.keepErr = pipeline.Run(turn, r.bind(delivery()), kept, r.Metrics.Observer(v1alpha1.BundleDeploymentKind, pipeline.PhaseCorrectingDrift))
	if s.keepErr != nil && budget.Over(turn) {
		s.keepErr = fmt.Errorf("its API server answers too slowly for a turn of %s", r.turnBudget())
	}
	s.Stored = kept.Stored
}

// applying tells whether an apply was begun and is not known to be complete: it was interrupted, or
// waits for the deletion of an object that is to be recreated.
func (s *state) applying() bool {
	return slices.ContainsFunc(s.listed.Inventory.Entries, func(e inventory.Entry) bool { return e.Begun || !e.Confirmed() })
}

// leaveOut excludes objects with violations from drift correction. If one is the Secret
// of a certificate, or such a Secret could not be read, all objects that hold or trust
// certificates are excluded.
func (s *state) leaveOut(violations []violation.Violation) {
	if !s.Keeping {
		return
	}
	secret := false
	for _, violation := range violations {
		s.decided.LeftOut = append(s.decided.LeftOut, violation.String())
		secret = secret || s.rendered.Issued.Secret(violation.Object) != nil
	}
	if s.rendered.Issued == nil || !secret && s.rendered.Issued.Unseen(s.decided.Plan) == nil {
		return
	}
	s.decided.Plan.LeaveOut(func(o plan.Object) bool { return s.rendered.Issued.Secret(o.ID) != nil || s.rendered.Trusts(o.Desired) })
}

// leaveOutFailed is leaveOut for objects that the API server rejects.
func (s *state) leaveOutFailed(failed []*objecterror.Error) {
	out := map[inventory.ID]bool{}
	for _, f := range failed {
		s.decided.LeftOut = append(s.decided.LeftOut, f.Error())
		out[f.ID] = true
	}
	s.decided.Plan.LeaveOut(func(o plan.Object) bool { return out[o.ID] })
}

// keptText says whether drift of the last applied revision is corrected, and its health, while a
// newer one fails with a message.
func (s *state) keptText(message string) string {
	kept := s.kept
	unsaid := slices.DeleteFunc(slices.Clone(kept.decided.LeftOut), func(line string) bool { return strings.Contains(message, line) })
	slices.Sort(unsaid)
	unhealthy := ""
	if kept.settled.Health != nil && !kept.settled.Health.Healthy() {
		unhealthy = ", and is not healthy: " + kept.settled.Health.Message()
	}
	switch {
	case len(kept.decided.LeftOut) == 0 && unhealthy != "":
		return unhealthy
	case len(kept.decided.LeftOut) == 0:
		return " and is kept from drifting"
	case len(unsaid) == 0:
		return fmt.Sprintf(" and is kept from drifting, but for %d of its objects", len(kept.decided.LeftOut)) + unhealthy
	}
	return fmt.Sprintf(" and is kept from drifting, but for %d of its objects%s\n%s", len(kept.decided.LeftOut), unhealthy, strings.Join(unsaid, "\n"))
}
