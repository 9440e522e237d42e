// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/budget"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/handover"
	"github.com/satchel-dev/satchel/internal/controller/deployment/hooks"
	"github.com/satchel-dev/satchel/internal/controller/deployment/render"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// keepApplied corrects drift of the last applied revision, and checks its health, while a newer one cannot be applied, or while some
// of its objects cannot be planned. A problem with one object does not affect the others.
func (r *Reconciler) keepApplied(ctx context.Context, s *state, err error) {
	if !s.leavesApplied(err) {
		return
	}
	if s.comparisonSkipped = errors.Is(err, render.ErrPending) && s.asCompared(); s.comparisonSkipped {
		return
	}
	access := stage.Access{}
	if access.Client, s.keepErr = r.keepingClient(ctx, s, err); s.keepErr != nil {
		return
	}
	last, rebuilt, unproven, failed := r.lastApplied(ctx, s, access)
	if s.keepErr = failed; failed != nil {
		return
	}
	kept := &state{
		Subject: s.Subject, listed: stage.ListingOf(s.listed.Current()),
		resolved: stage.Resolved{Access: access, Due: true, Unapproved: approval.AwaitsApproval(err)},
		rendered: stage.Rendered{Desired: last.Objects, Wanted: last.Certificates, Unproven: unproven},
	}
	kept.resolved.BesideAttempt = s.besideAttempt(err)
	kept.Keeping, kept.Snapshot = true, snapshot.NewReader(r.Snapshots, string(s.Object.UID))
	s.kept = kept
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
	if rebuilt && s.keepErr == nil {
		saved, failed := r.deliver.KeepSnapshot(kept.delivering(), last)
		if s.keepErr = failed; saved && approval.AwaitsApproval(err) {
			r.waker.Wake(s.Key(), 0) // what needs an approval may depend on it
		}
	}
	s.Stored = kept.Stored
}

// lastApplied is what was applied last. rebuilt tells that it was converted again, and unproven that only a plan tells whether it is the same.
func (r *Reconciler) lastApplied(ctx context.Context, s *state, access stage.Access) (last snapshot.Snapshot, rebuilt, unproven bool, err error) {
	last, found, err := snapshot.Read(r.Snapshots, string(s.Object.UID))
	if err == nil && found {
		return last, false, false, nil
	} else if err == nil {
		err = errors.New("what was applied last is not in the cache any more")
	}
	last, unproven, err = r.convertAgain(ctx, s.Subject, s.listed, access, err)
	return last, true, unproven, err
}

// convertAgain converts the applied revision from its artifact, because what was kept of it cannot be read.
func (r *Reconciler) convertAgain(ctx context.Context, of stage.Subject, listed stage.Listing, access stage.Access, cause error) (last snapshot.Snapshot, unproven bool, err error) {
	again := &state{Subject: of, listed: listed, resolved: stage.Resolved{Access: access, Due: true}}
	again.resolved.Inputs = stage.Inputs{Sought: true, Needed: spec.Inputs(of.Object)}
	defer again.close()
	if err = r.resolve.ReadInputs(ctx, again.resolving()); err == nil {
		last, unproven, err = r.render.Again(ctx, again.rendering())
	}
	if err != nil {
		return last, false, fmt.Errorf("%w; converting it again from its artifact: %w", cause, err)
	}
	return last, unproven, nil
}

// hooksAgain are the hooks of the applied revision, from its artifact.
func (r *Reconciler) hooksAgain(ctx context.Context, in *hooks.Input, cause error) ([]plan.Hook, error) {
	last, unproven, err := r.convertAgain(ctx, *in.Subject, *in.Listed, in.Resolved.Access, cause)
	if err == nil && unproven {
		err = fmt.Errorf("%w; whether the artifact still produces the applied objects is unknown", cause)
	}
	return last.Hooks, err
}

// leavesApplied tells whether drift of the last applied revision is corrected after a reconcile that ended with an error or none: its
// attempt has written nothing, or it waits or failed beside the applied revision, of which changes were reported.
func (s *state) leavesApplied(err error) bool {
	switch found := s.resolved.Found; {
	case s.Object.Status.Applied.Revision == "" || s.resolved.Access.Client == nil || pipeline.IsStale(err):
		return false // nothing is applied, it is not known where, or that was decided on a stale copy
	case s.besideAttempt(err) && (!errors.Is(err, render.ErrPending) || s.listed.Inventory().Unfinished()):
		return !found.Watched || len(found.Drifted)+len(found.Changed) > 0
	}
	return err != nil && declared(err).keepsApplied
}

// besideAttempt tells that an attempt at other content may have written: it waits, failed while it wrote, or a conversion runs. What it has
// written and deleted stays so: the next attempt may want the same, and would only do it again.
func (s *state) besideAttempt(err error) bool {
	switch {
	case errors.Is(err, render.ErrPending):
		return true
	case s.resolved.AppliedAsIs(&s.Subject):
		return false
	case err == nil:
		return s.delivered.Waits()
	}
	return declared(err).name == stage.StepApply || declared(err).name == stage.StepPruneFirst
}

// asCompared tells that the last comparison found nothing to do, that it is not yet due again, and that the watches, which cover all
// objects, have reported no change since.
func (s *state) asCompared() bool {
	found, note := s.resolved.Found, s.note
	unchanged := found.Watched && len(found.Drifted) == 0 && len(found.Changed) == 0 && len(s.Object.Spec.Health.Checks) == 0
	complete := note.Known && note.Planned.Steady && len(note.Health.Unhealthy) == 0 && len(note.Planned.Conflicts) == 0
	return unchanged && complete && s.untilCompared() > 0
}

// untilCompared is the time until the applied revision has to be compared again; zero or less when that is due.
func (s *state) untilCompared() time.Duration {
	at := s.note.Checked.Add(effective.Interval(&s.Object.Spec))
	if renew := s.note.Renew; !renew.IsZero() && renew.Before(at) {
		at = renew
	}
	return at.Sub(s.Now)
}

// handOver gives away what a refused plan leaves to other deployments, and wakes those of the namespace that wait to know what
// this one wants.
func (r *Reconciler) handOver(ctx context.Context, s *state, err error) error {
	if failed := r.deliver.GiveAway(ctx, s.delivering()); failed != nil {
		err = errors.Join(err, failed)
	}
	if !errors.Is(err, render.ErrPending) && !pipeline.IsStale(err) { // neither has decided anything
		state := handover.State{UID: s.Object.UID, Generation: s.Object.Generation, Revision: s.resolved.Revision()}
		for _, waiting := range r.handover.Saw(s.Key(), state) {
			r.waker.Wake(waiting, 0)
		}
	}
	return err
}
