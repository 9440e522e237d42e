// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant/connection"
	"github.com/satchel-dev/satchel/internal/controller/budget"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/render"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/plural"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// turnPause is the pause after a turn that used up its budget; other waiting deployments of the namespace come first.
const turnPause = 200 * time.Millisecond

// beginTurn starts the time budget of a reconcile for another cluster. Other reconciles have none: they use the controller's
// own API server.
func (r *Reconciler) beginTurn(ctx context.Context, s *state) (context.Context, context.CancelFunc) {
	if !effective.IsRemote(s.Object.Spec.Target.ClusterReference) {
		return context.WithCancel(ctx)
	}
	return budget.Begin(ctx, r.RemoteTurn)
}

// runSteps runs the steps of a reconcile within its turn.
func (r *Reconciler) runSteps(ctx context.Context, s *state) error {
	turn, cancel := r.beginTurn(ctx, s)
	defer cancel()
	err := pipeline.Run(turn, r.bind(declaredSteps()), s, r.Metrics.Observer(v1alpha1.BundleDeploymentKind, pipeline.PhaseReconciling))
	return r.endTurn(turn, s, resolve.AsRemoteFailure(s.resolved.Access, err))
}

// endTurn distinguishes a turn that used up its budget from a failure. The first line that holds decides.
//
//	the reconcile ended by itself           as it ended
//	budget.MostIdle turns without progress  ClusterTooSlow
//	else                                    no failure: the next turn goes on
func (r *Reconciler) endTurn(turn context.Context, s *state, err error) error {
	key := s.Key()
	if err == nil || !effective.IsRemote(s.Object.Spec.Target.ClusterReference) && !pipeline.IsStale(err) && failure.Of(err).Reason != v1alpha1.ReasonFailed && !errors.Is(err, render.ErrPending) {
		r.progress.Forget(key)
		return err
	}
	if s.resolved.Access.Remote == "" || !budget.Over(turn) || decidedOtherwise(err) {
		return err
	}
	progress := s.progressed()
	r.Work.Turn(progress)
	if r.progress.End(key, fmt.Sprint(s.Object.UID, s.Object.Generation), progress) {
		return &pipeline.StepError{Step: pipeline.FailedStep(err), Err: failure.Error{Reason: v1alpha1.ReasonClusterTooSlow, Err: fmt.Errorf(
			"%s: the API server %s answers so slowly that nothing was confirmed in %d turns of %s (in the step %s): find out why it is slow; if it cannot be faster, make the bundle smaller, or have --remote-turn of the controller raised",
			s.resolved.Access.Remote, s.resolved.Access.Client.Identity().Host, budget.MostIdle, r.turnBudget(), pipeline.FailedStep(err))}}
	}
	s.delivered.Cut = stage.CutIdle
	if progress {
		s.delivered.Cut = stage.CutProgressing
	}
	s.delivered.WaitsFor = s.turnText(progress, r.turnBudget())
	if s.resolved.Due { // the comparison has to be repeated
		s.note = stage.Note{
			UID: s.Object.UID, Applying: stage.ApplyingNote{Wrote: s.note.Applying.Wrote, Room: s.note.Applying.Room},
			Planned: stage.PlannedNote{Conflicts: s.note.Planned.Conflicts}, Health: stage.HealthNote{Looked: s.note.Health.Looked},
		}
	}
	return nil
}

// decidedOtherwise tells whether an error has another cause than the end of the turn: a step decided it. An unreachable
// cluster may be caused by the end of the turn.
func decidedOtherwise(err error) bool {
	var known failure.Error
	if errors.Is(err, connection.ErrTurnOver) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return errors.As(err, &known) && known.Reason != v1alpha1.ReasonClusterUnreachable
}

// turnText describes the progress of the turns.
func (s *state) turnText(progress bool, turn time.Duration) string {
	server := s.resolved.Access.Remote + ": the API server " + s.resolved.Access.Client.Identity().Host + " answers slowly: "
	const next = ", and the next turn goes on"
	switch {
	case !progress:
		return fmt.Sprintf("%sno object was confirmed within %s; the next reconcile continues", server, turn)
	case s.delivered.Removed != nil:
		return fmt.Sprintf("%s%s left to remove%s", server, plural.Are(s.listed.Current().Len(), "object"), next)
	case s.delivered.Applied == nil:
		return server + "revision " + s.resolved.Revision() + " is not applied yet" + next
	}
	done := 0
	for _, entry := range s.listed.Inventory().Entries {
		if entry.Confirmed() && !entry.Begun {
			done++
		}
	}
	return fmt.Sprintf("%s%d of %s applied%s", server, done, plural.Are(s.listed.Current().Len(), "object"), next)
}

// progressed tells whether the remote server confirmed anything new in this reconcile: a write, a deletion, a step of a hook,
// or a dry run that need not be repeated.
func (s *state) progressed() bool {
	return s.decided.Tried || s.delivered.Applied.Wrote() || s.delivered.Repaired.Result().Wrote() || s.delivered.Pruned != nil && len(s.delivered.Pruned.Gone)+s.delivered.Pruned.Deleted > 0 ||
		s.delivered.Removed != nil && len(s.delivered.Removed.Gone)+s.delivered.Removed.Deleted > 0 || s.HooksMoved()
}

// keepsTold tells that the status stays unchanged: the turn was idle, and there are no new facts.
func (s *state) keepsTold() bool {
	if s.delivered.Cut != stage.CutIdle {
		return false
	}
	return s.resolved.Artifact == nil && s.Before.Status.ObservedGeneration == s.Object.Generation || s.resolved.SameAsBefore(&s.Subject)
}

// turnBudget is the budget of a turn.
func (r *Reconciler) turnBudget() time.Duration {
	if r.RemoteTurn <= 0 {
		return budget.Default
	}
	return r.RemoteTurn
}
