// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/controller/deployment/abandon"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

const (
	// lastTries is how many failures in a row it takes before a removal that keeps everything ends without annotating it.
	lastTries = 6
	// lastLooks is the same for objects that such a removal waits for: about a minute.
	lastLooks = 14
	// orphanTime bounds annotating what is left when a removal is abandoned.
	orphanTime = 30 * time.Second
)

// stuck returns what a removal waits for that did not end, and why it is abandoned now; "" when it is not.
//
//	everything is kept    abandoned as soon as that can be said: see keepsAll
//	it did not fail       goes on
//	else                  see abandon.Decide
func (r *Reconciler) stuck(ctx context.Context, s *state, err error) (wait *abandon.Wait, why string) {
	if r.keepsAll(ctx, s, err) {
		return nil, "as spec.deletionPolicy is Orphan"
	}
	if err == nil {
		return nil, ""
	}
	terminating, unknown := r.terminating(ctx, s.Object.Namespace)
	reason := failure.Of(err).Reason
	if reason == v1alpha1.ReasonFailed {
		reason = v1alpha1.ReasonRemovalFailed
	}
	return abandon.Decide(abandon.Facts{
		Object: s.Before, Reason: reason, AccountGone: s.resolved.Access.Gone, Transient: unknown != nil || s.delivered.IsTransient(err),
		Failures: r.backoff.Count(s.Key()), Terminating: terminating, Limit: r.AbandonAfter, Now: s.Now,
	})
}

// keepsAll tells that everything is to be kept, and that this cannot be completed: at once if the ServiceAccount is gone
// or the cluster is another one, else after lastTries failures, or after lastLooks for objects that cannot be
// annotated. A removal that keeps all objects must never be stuck.
func (r *Reconciler) keepsAll(ctx context.Context, s *state, err error) bool {
	pruning, unknown := r.Approvals().AllowedPruning(ctx, s.Object)
	switch {
	case unknown != nil || !pruning.Orphan:
		return false
	case err == nil:
		return s.note.Applying.Pauses >= lastLooks
	case s.resolved.Access.Gone && !s.delivered.IsTransient(err):
		return true
	}
	switch failure.Of(err).Reason {
	case v1alpha1.ReasonAccountNotFound, v1alpha1.ReasonTargetChanged:
		return true
	}
	return r.backoff.Count(s.Key()) >= lastTries
}

// terminating is when the deletion of a namespace began; zero if it is not being deleted.
func (r *Reconciler) terminating(ctx context.Context, name string) (time.Time, error) {
	var namespace corev1.Namespace
	err := r.APIReader.Get(ctx, types.NamespacedName{Name: name}, &namespace)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if namespace.DeletionTimestamp == nil {
		return time.Time{}, nil
	}
	return namespace.DeletionTimestamp.Time, nil
}

// abandonRemoval ends a removal that cannot be completed: it annotates what is left as orphaned, as far as that is possible, lists
// all of it, and removes the finalizer. What is listed is told before the finalizer goes, so that it is never lost.
func (r *Reconciler) abandonRemoval(ctx context.Context, s *state, why string, cause error) (ctrl.Result, error) {
	left := r.orphanLeft(ctx, s, cause)
	left.Why, left.Cause = why, failureText(cause)
	terminating, err := r.terminating(ctx, s.Object.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.tellLeft(ctx, s, left, !terminating.IsZero())
	return r.release(ctx, s)
}

// orphanLeft annotates the objects of the inventory as orphaned. It does so only where the removal had reached their
// cluster: a client for another one would meet other objects of the same names.
func (r *Reconciler) orphanLeft(ctx context.Context, s *state, cause error) abandon.Left {
	left := abandon.Left{}
	listed := s.listed.Inventory()
	if reachedObjects(cause) && listed.Len() > 0 {
		bounded, cancel := context.WithTimeout(ctx, orphanTime)
		defer cancel()
		orphaned, err := removal.Orphan(bounded, s.resolved.Access.Client, s.Owner, listed, removal.Options{Migrations: r.migrations})
		if err != nil {
			ctrl.LoggerFrom(ctx).Info("not everything could be annotated as orphaned", "error", pipeline.Shorten(err.Error(), pipeline.LongestNote))
		}
		listed, left.Marked = orphaned.Inventory, orphaned.Orphaned
	}
	for _, entry := range listed.Entries {
		left.Unmarked = append(left.Unmarked, entry.ID)
	}
	return left
}

// failureText is why a removal failed; "" if it did not.
func failureText(err error) string {
	if err == nil {
		return ""
	}
	return pipeline.Shorten(failure.Of(err).Error(), pipeline.LongestNote)
}

// reachedObjects tells that a removal got as far as the objects, on the cluster of the inventory.
func reachedObjects(cause error) bool {
	if cause == nil {
		return true
	}
	steps := declaredRemoval()
	switch failure.Of(cause).Reason {
	case v1alpha1.ReasonClusterUnreachable, v1alpha1.ReasonClusterTooSlow:
		return false
	}
	return indexOfStep(steps, pipeline.FailedStep(cause)) > indexOfStep(steps, "target")
}

// tellLeft lists what is left in the log and in an event. In a namespace that is being deleted, which accepts no events, the
// event is about the namespace, and so is stored in the namespace default; what goes with the namespace is not listed.
func (r *Reconciler) tellLeft(ctx context.Context, s *state, left abandon.Left, terminating bool) {
	if terminating && !effective.IsRemote(s.Object.Spec.Target.ClusterReference) {
		goes := func(id inventory.ID) bool { return id.Namespace == s.Object.Namespace }
		left.Marked, left.Unmarked = slices.DeleteFunc(left.Marked, goes), slices.DeleteFunc(left.Unmarked, goes)
	}
	ctrl.LoggerFrom(ctx).Info("removal abandoned", "why", left.Why, "cause", left.Cause, "annotated", pipeline.JoinNames(left.Marked), "left", pipeline.JoinNames(left.Unmarked))
	if len(left.Marked)+len(left.Unmarked) == 0 && terminating {
		return
	}
	if !terminating {
		r.deliver.Events.Warning(&s.Subject, "LeftBehind", "Remove", left.Note("the removal"))
		return
	}
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	namespace.Name = s.Object.Namespace
	r.Events.Eventf(namespace, s.Object, corev1.EventTypeWarning, "LeftBehind", "Remove", "%s",
		left.Note(fmt.Sprintf("the removal of bundledeployment %s/%s", s.Object.Namespace, s.Object.Name)))
}
