// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/controller/deployment/abandon"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/hooks"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/deployment/settle"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// remove deletes what the deployment installed, in order, and removes the finalizer when nothing is left.
func (r *Reconciler) remove(ctx context.Context, s *state) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(s.Object, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	r.beginRemoval(s)
	turn, cancel := r.beginTurn(ctx, s)
	defer cancel()
	err := pipeline.Run(turn, r.bind(declaredRemoval()), s, r.Metrics.Observer(v1alpha1.BundleDeploymentKind, pipeline.PhaseRemoving))
	err = r.scrub(ctx, s, r.endTurn(turn, s, resolve.AsRemoteFailure(s.resolved.Access, err)))
	r.settle.EmitRecovered(s.settling(err))
	r.settle.EmitKept(s.settling(err))
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctrl.Result{}, nil // the process ends, or lost its lease
	case s.delivered.Cut != stage.Uncut:
		return r.finishRemoval(ctx, s, nil, nil)
	case err == nil && s.delivered.Removed.Done() && s.delivered.Hooks.Waits == "":
		return r.release(ctx, s)
	}
	wait, why := r.stuck(ctx, s, err)
	if why != "" {
		return r.abandonRemoval(ctx, s, why, err)
	}
	return r.finishRemoval(ctx, s, wait, err)
}

// beginRemoval resets the note and backoff of the installation: a removal counts its own checks and failures.
func (r *Reconciler) beginRemoval(s *state) {
	if s.note.Removing {
		return
	}
	key := s.Key()
	s.note = s.emptyNote()
	s.note.Removing = true
	r.memory.Keep(key, s.note)
	r.backoff.Succeeded(key)
	r.unwatch(key)
}

// removalAccount is the step account, unless there is nothing to remove.
func (r *Reconciler) removalAccount(ctx context.Context, s *state) (pipeline.Outcome, error) {
	listed, err := r.resolve.ReadInventory(s.resolving())
	s.listed.Set(listed)
	if err != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonFailed, Stalled: true, Err: err}
	}
	if s.listed.Current().Len() == 0 && !s.resolving().Lost() && !hooks.BetweenHooks(s.Object) {
		s.delivered.Removed = &removal.Removed{}
		return pipeline.Stop, nil
	}
	outcome, err := r.resolve.FindAccountToRemove(ctx, s.resolving())
	if s.listed.Current().Len() == 0 && err != nil && failure.Of(err).Reason == v1alpha1.ReasonAccountNotFound {
		s.delivered.Removed = &removal.Removed{} // nothing is known to exist, and without the ServiceAccount nothing can be listed
		return pipeline.Stop, nil
	}
	return outcome, err
}

// finishRemoval writes the status of an unfinished removal, with what it waits for if it cannot go on.
func (r *Reconciler) finishRemoval(ctx context.Context, s *state, wait *abandon.Wait, err error) (ctrl.Result, error) {
	settle.ReportRemoval(s.settling(err), wait, err)
	if failed := s.Write(ctx, r.writer); failed != nil {
		return r.backoff.Conflict(s.Key(), failed)
	}
	r.settle.EmitRemoval(s.settling(err))
	key := s.Key()
	pipeline.LogFailure(ctx, s.Before, s.Object, err)
	if err != nil {
		pause := r.backoff.Failed(key, effective.RetryInterval(&s.Object.Spec))
		if wait != nil && !wait.Until.IsZero() {
			pause = min(pause, max(wait.Until.Sub(s.Now), time.Second)) // an attempt at the time limit
		}
		return ctrl.Result{RequeueAfter: pause}, nil
	}
	r.backoff.Succeeded(key)
	looks := s.note.Applying.Pauses
	s.note.Applying.Pauses++
	s.note.Version = s.Object.ResourceVersion
	r.memory.Keep(key, s.note)
	if s.delivered.Cut != stage.Uncut {
		return ctrl.Result{RequeueAfter: turnPause}, nil
	}
	return ctrl.Result{RequeueAfter: settle.PollPause(looks)}, nil
}

// release removes the finalizer, and forgets the deployment.
func (r *Reconciler) release(ctx context.Context, s *state) (ctrl.Result, error) {
	before := s.Object.DeepCopy()
	controllerutil.RemoveFinalizer(s.Object, v1alpha1.Finalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, s.Object, patch, client.FieldOwner(FieldManager)); err != nil {
		return r.backoff.Conflict(s.Key(), fmt.Errorf("releasing bundledeployment %s/%s: %w", s.Object.Namespace, s.Object.Name, err))
	}
	return ctrl.Result{}, r.forget(s.Key())
}
