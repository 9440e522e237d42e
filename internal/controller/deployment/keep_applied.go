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
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// keepApplied corrects drift of the last applied revision, and checks its health, while a
// newer one cannot be applied, or while some of its objects cannot be planned. A problem
// with one object does not affect the others.
func (r *Reconciler) keepApplied(ctx context.Context, s *state, err error) {
	if pipeline.IsStale(err) || !declared(err).keepsApplied {
		return // decided on a stale copy, or failed where the last revision is touched already
	}
	if s.object.Status.LastAppliedRevision == "" || s.resolved.access.Client == nil {
		return
	}
	if errors.Is(err, render.ErrPending) && s.applying() {
		return // it goes on in a moment, and would find undone what it did
	}
	last, found, readErr := snapshot.Read(r.Snapshots, string(s.object.UID))
	if readErr == nil && !found {
		readErr = errors.New("what was applied last is not in the cache any more")
	}
	if readErr != nil {
		s.keepErr = readErr
		return
	}
	kept := &state{
		subject: s.subject, listed: listing{inventory: s.listed.inventory}, snapshot: snapshot.NewReader(r.Snapshots, string(s.object.UID)),
		resolved: resolved{due: true, unapproved: approval.AwaitsApproval(err)},
		rendered: rendered{desired: last.Objects, wanted: last.Certificates},
	}
	kept.keeping = true
	s.kept = kept
	if kept.resolved.access.Client, s.keepErr = r.keepingClient(ctx, s, err); s.keepErr != nil {
		return
	}
	s.drop() // or both states would wait for the room that the other one holds
	if kept.rendered.release, s.keepErr = r.renderer.Hold(kept.object, render.ValuesOf(kept.rendered.desired)); s.keepErr != nil {
		return
	}
	turn, cancel := r.beginTurn(ctx, s)
	defer cancel()
	s.keepErr = pipeline.Run(turn, r.bind(delivery()), kept, r.Metrics.Observer(v1alpha1.BundleDeploymentKind, pipeline.PhaseCorrectingDrift))
	if s.keepErr != nil && budget.Over(turn) {
		s.keepErr = fmt.Errorf("its API server answers too slowly for a turn of %s", r.turnBudget())
	}
	s.stored = kept.stored
}

// applying tells whether an apply was begun and is not known to be complete: it was interrupted, or
// waits for the deletion of an object that is to be recreated.
func (s *state) applying() bool {
	return slices.ContainsFunc(s.listed.inventory.Entries, func(e inventory.Entry) bool { return e.Begun || !e.Confirmed() })
}

// leaveOut excludes objects with violations from drift correction. If one is the Secret
// of a certificate, or such a Secret could not be read, all objects that hold or trust
// certificates are excluded.
func (s *state) leaveOut(violations []violation.Violation) {
	if !s.keeping {
		return
	}
	secret := false
	for _, violation := range violations {
		s.decided.leftOut = append(s.decided.leftOut, violation.String())
		secret = secret || s.rendered.issued.Secret(violation.Object) != nil
	}
	if s.rendered.issued == nil || !secret && s.rendered.issued.Unseen(s.decided.plan) == nil {
		return
	}
	s.decided.plan.LeaveOut(func(o plan.Object) bool { return s.rendered.issued.Secret(o.ID) != nil || s.trusts(o.Desired) })
}

// leaveOutFailed is leaveOut for objects that the API server rejects.
func (s *state) leaveOutFailed(failed []*objecterror.Error) {
	out := map[inventory.ID]bool{}
	for _, f := range failed {
		s.decided.leftOut = append(s.decided.leftOut, f.Error())
		out[f.ID] = true
	}
	s.decided.plan.LeaveOut(func(o plan.Object) bool { return out[o.ID] })
}

// keptText says whether drift of the last applied revision is corrected, and its health, while a
// newer one fails with a message.
func (s *state) keptText(message string) string {
	kept := s.kept
	unsaid := slices.DeleteFunc(slices.Clone(kept.decided.leftOut), func(line string) bool { return strings.Contains(message, line) })
	slices.Sort(unsaid)
	unhealthy := ""
	if kept.settled.health != nil && !kept.settled.health.Healthy() {
		unhealthy = ", and is not healthy: " + kept.settled.health.Message()
	}
	switch {
	case len(kept.decided.leftOut) == 0 && unhealthy != "":
		return unhealthy
	case len(kept.decided.leftOut) == 0:
		return " and is kept from drifting"
	case len(unsaid) == 0:
		return fmt.Sprintf(" and is kept from drifting, but for %d of its objects", len(kept.decided.leftOut)) + unhealthy
	}
	return fmt.Sprintf(" and is kept from drifting, but for %d of its objects%s\n%s", len(kept.decided.leftOut), unhealthy, strings.Join(unsaid, "\n"))
}
