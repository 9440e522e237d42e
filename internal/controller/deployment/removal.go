// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/hooks"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/deployment/settle"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// lastTries is how many failures in a row it takes before the finalizer is removed
// anyway, if the deployment's own namespace is being deleted with the permissions to
// clean up.
const lastTries = 6

// remove deletes what the deployment installed, in order, and removes the finalizer
// when nothing is left.
func (r *Reconciler) remove(ctx context.Context, s *state) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(s.Object, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	r.beginRemoval(s)
	turn, cancel := r.beginTurn(ctx, s)
	defer cancel()
	err := pipeline.Run(turn, r.bind(declaredRemoval()), s, r.Metrics.Observer(v1alpha1.BundleDeploymentKind, pipeline.PhaseRemoving))
	err = r.scrub(ctx, s, r.endTurn(turn, s, resolve.AsRemoteFailure(s.resolved.Access, s.Object, err)))
	r.settle.EmitRecovered(s.settling(err))
	r.settle.EmitKept(s.settling(err))
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctrl.Result{}, nil // the process ends, or lost its lease
	case s.delivered.Cut != stage.Uncut:
		return r.finishRemoval(ctx, s, nil)
	case err == nil && s.delivered.Removed.Done() && s.delivered.Hooks.Waits == "":
		return r.release(ctx, s, nil)
	case err != nil && (r.abandoned(ctx, s) || r.endsAnyway(ctx, s, err)):
		return r.release(ctx, s, err)
	}
	return r.finishRemoval(ctx, s, err)
}

// beginRemoval resets the note and backoff of the installation: a removal counts its own
// checks and failures.
func (r *Reconciler) beginRemoval(s *state) {
	if s.note.Removing {
		return
	}
	key := s.Key()
	s.note = stage.Note{UID: s.Object.UID, Removing: true}
	r.memory.Keep(key, s.note)
	r.backoff.Succeeded(key)
	r.unwatch(key)
}

// removalAccount is the step account, unless there is nothing to remove.
func (r *Reconciler) removalAccount(ctx context.Context, s *state) (pipeline.Outcome, error) {
	var err error
	if s.listed.Inventory, err = r.resolve.ReadInventory(s.resolving()); err != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonFailed, Stalled: true, Err: err}
	}
	if s.listed.Inventory.Len() == 0 && !s.resolving().Lost() && !hooks.BetweenHooks(s.Object) {
		s.delivered.Removed = &removal.Removed{}
		return pipeline.Stop, nil
	}
	outcome, err := r.resolve.FindAccount(ctx, s.resolving())
	if s.listed.Inventory.Len() == 0 && err != nil && failure.Of(err).Reason == v1alpha1.ReasonAccountNotFound {
		s.delivered.Removed = &removal.Removed{} // nothing is known to exist, and without the ServiceAccount nothing can be listed
		return pipeline.Stop, nil
	}
	return outcome, err
}

// finishRemoval writes the status of an unfinished removal.
func (r *Reconciler) finishRemoval(ctx context.Context, s *state, err error) (ctrl.Result, error) {
	settle.ReportRemoval(s.settling(err), err)
	if failed := s.Write(ctx, r.writer); failed != nil {
		return r.backoff.Conflict(s.Key(), failed)
	}
	r.settle.EmitRemoval(s.settling(err))
	key := s.Key()
	pipeline.LogFailure(ctx, s.Before, s.Object, err)
	if err != nil {
		return ctrl.Result{RequeueAfter: r.backoff.Failed(key, effective.RetryInterval(&s.Object.Spec))}, nil
	}
	r.backoff.Succeeded(key)
	looks := s.note.Applying.Pauses
	s.note.Applying.Pauses++
	r.memory.Keep(key, s.note)
	if s.delivered.Cut != stage.Uncut {
		return ctrl.Result{RequeueAfter: turnPause}, nil
	}
	return ctrl.Result{RequeueAfter: settle.PollPause(looks)}, nil
}

// release removes the finalizer, and forgets the deployment. With the error of a failed
// removal, an event names the objects left behind.
func (r *Reconciler) release(ctx context.Context, s *state, cause error) (ctrl.Result, error) {
	before := s.Object.DeepCopy()
	controllerutil.RemoveFinalizer(s.Object, v1alpha1.Finalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, s.Object, patch, client.FieldOwner(FieldManager)); err != nil {
		return r.backoff.Conflict(s.Key(), fmt.Errorf("releasing bundledeployment %s/%s: %w", s.Object.Namespace, s.Object.Name, err))
	}
	switch {
	case cause == nil:
	case r.orphans(ctx, s):
		r.listUnreleased(s, cause)
	default:
		r.listLeftovers(s, cause)
	}
	return ctrl.Result{}, r.forget(s.Key())
}

// abandoned tells that the removal keeps failing while the deployment's own namespace
// is being deleted: the ServiceAccount and its permissions are gone then, and will not
// return.
func (r *Reconciler) abandoned(ctx context.Context, s *state) bool {
	if r.backoff.Count(s.Key()) < lastTries {
		return false
	}
	var namespace corev1.Namespace
	err := r.APIReader.Get(ctx, types.NamespacedName{Name: s.Object.Namespace}, &namespace)
	return err == nil && !namespace.DeletionTimestamp.IsZero()
}

// endsAnyway tells that everything is to be kept, and cannot be annotated as orphaned: at
// once if the ServiceAccount is gone or the cluster is another one, else after lastTries
// failures. A removal that keeps all objects must never be stuck for lack of permissions.
func (r *Reconciler) endsAnyway(ctx context.Context, s *state, err error) bool {
	if !r.orphans(ctx, s) {
		return false
	}
	switch failure.Of(err).Reason {
	case v1alpha1.ReasonAccountNotFound, v1alpha1.ReasonTargetChanged:
		return true
	}
	return r.backoff.Count(s.Key()) >= lastTries
}

// orphans tells that everything is to be kept; false while that is unknown.
func (r *Reconciler) orphans(ctx context.Context, s *state) bool {
	pruning, err := r.approvals().AllowedPruning(ctx, s.Object)
	return err == nil && pruning.Orphan
}

// listUnreleased emits an event with the objects that are kept with their labels.
func (r *Reconciler) listUnreleased(s *state, err error) {
	if s.listed.Inventory.Len() == 0 {
		return
	}
	left := make([]inventory.ID, 0, s.listed.Inventory.Len())
	for _, entry := range s.listed.Inventory.Entries {
		left = append(left, entry.ID)
	}
	r.deliver.Events.Warning(&s.Subject, "LeftBehind", "Remove", fmt.Sprintf("%d objects are kept, and could not be annotated as orphaned (%s): %s",
		len(left), failure.Of(err).Error(), pipeline.JoinNames(left)))
}

// listLeftovers emits an event with the objects left behind, without those that are
// deleted with the namespace. The event is about the namespace, and so is stored in
// namespace default: a namespace that is being deleted accepts no events.
func (r *Reconciler) listLeftovers(s *state, err error) {
	var left []inventory.ID
	for _, entry := range s.listed.Inventory.Entries {
		if entry.Namespace != s.Object.Namespace || s.Object.Spec.KubeConfig != nil {
			left = append(left, entry.ID)
		}
	}
	if len(left) == 0 {
		return
	}
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	namespace.Name = s.Object.Namespace
	r.Events.Eventf(namespace, s.Object, corev1.EventTypeWarning, "LeftBehind", "Remove", "%s",
		fmt.Sprintf("bundledeployment %s/%s was deleted with its namespace and could not remove its objects (%s); delete these yourself: %s",
			s.Object.Namespace, s.Object.Name, failure.Of(err).Error(), pipeline.JoinNames(left)))
}
