// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// beforeRemoval runs the hooks before the first deletion.
func (r *Reconciler) beforeRemoval(ctx context.Context, s *state) (pipeline.Outcome, error) {
	record := s.Object.Status.Hooks
	if !s.hasDeleteHooks() || record.Removed {
		return pipeline.Continue, nil
	}
	return r.deletionHooks(ctx, s, false)
}

// afterRemoval runs the hooks after the last deletion, and then removes their objects.
func (r *Reconciler) afterRemoval(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.hasDeleteHooks() || !s.delivered.Removed.Done() {
		return pipeline.Continue, nil
	}
	record := s.Object.Status.Hooks
	if record.FinishedTime != nil {
		return pipeline.Continue, nil
	}
	record.Removed = true
	outcome, err := r.deletionHooks(ctx, s, true)
	if err != nil || outcome == pipeline.Stop {
		return pipeline.Stop, err
	}
	if record = s.Object.Status.Hooks; record.FinishedTime == nil {
		record.FinishedTime = new(pipeline.StatusTime(s.Now))
	}
	if s.listed.Inventory.Len() == 0 {
		return pipeline.Continue, nil
	}
	return r.removeObjects(ctx, s)
}

// hasDeleteHooks tells whether the removal has hooks: only a bundle that was applied once
// has.
func (s *state) hasDeleteHooks() bool {
	record := s.Object.Status.Hooks
	return record != nil && (record.OnDelete > 0 || record.Operation == v1alpha1.HookDelete) && s.Object.Status.LastAppliedRevision != ""
}

// betweenHooks tells that the objects are gone and hooks of the removal still have to run.
func (s *state) betweenHooks() bool {
	record := s.Object.Status.Hooks
	return record != nil && record.Operation == v1alpha1.HookDelete && record.Removed && record.FinishedTime == nil
}

// deletionHooks runs the hooks before, or after, the deletion. If hooks are skipped, by the
// annotation, because everything is kept, or because the namespace is being deleted, all
// count as done.
func (r *Reconciler) deletionHooks(ctx context.Context, s *state, after bool) (pipeline.Outcome, error) {
	if why, err := r.skipsHooks(ctx, s); err != nil || why != "" {
		return pipeline.Continue, r.skipHooks(s, why, err)
	}
	hooks, err := r.appliedHooks(ctx, s)
	if err != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonHookFailed, Err: fmt.Errorf(
			"the hooks that run when this BundleDeployment is deleted cannot be run: %w.\nTo remove without them, annotate the BundleDeployment with %s: Skip", err, v1alpha1.DeleteHooksAnnotation)}
	}
	waits, err := r.beginDeletion(ctx, s, hooks)
	if waits == "" && err == nil {
		waits, err = r.runHooks(ctx, s, hooks, after)
	}
	if s.delivered.Hooks.Waits = waits; waits != "" || err != nil {
		s.delivered.Removed = &removal.Removed{Inventory: s.listed.Inventory}
		return pipeline.Stop, err
	}
	return pipeline.Continue, nil
}

// beginDeletion makes the removal the current operation, or runs the hooks of the failed event
// again when that is requested. It returns what it waits for.
func (r *Reconciler) beginDeletion(ctx context.Context, s *state, hooks []plan.HookObject) (waits string, err error) {
	was := s.Object.Status.Hooks
	if was.Operation == v1alpha1.HookDelete {
		if failed := was.Failed; failed != nil && (failed.Generation != s.Object.Generation || failed.Requested != pipeline.Requested(s.Object)) {
			s.rewind(was, hooks)
		}
		return "", nil
	}
	if waits, err := r.supersede(ctx, s, was); waits != "" || err != nil {
		return waits, err
	}
	s.Object.Status.Hooks = &v1alpha1.HooksStatus{
		Operation: v1alpha1.HookDelete, Revision: was.Revision, Digest: was.Digest, Generation: s.Object.Generation, Key: was.Key, Material: was.Material,
		Run:   shortDigest("satchel.dev/hook-run/v1", string(s.Object.UID), string(plan.Removing), was.Material, was.Run),
		Total: count32(plan.HookRuns(hooks, plan.Removing)), OnDelete: was.OnDelete, Removed: was.Removed,
	}
	return "", nil
}

// skipsHooks says why the hooks of the removal are skipped; "" when they run.
func (r *Reconciler) skipsHooks(ctx context.Context, s *state) (why string, err error) {
	if strings.EqualFold(s.Object.Annotations[v1alpha1.DeleteHooksAnnotation], "Skip") {
		return "the annotation " + v1alpha1.DeleteHooksAnnotation + " says so", nil
	}
	if pruning, err := r.approvals().AllowedPruning(ctx, s.Object); err != nil || pruning.Orphan {
		return "everything is kept", err
	}
	var namespace corev1.Namespace
	if err := r.APIReader.Get(ctx, types.NamespacedName{Name: s.Object.Namespace}, &namespace); err != nil {
		return "", fmt.Errorf("reading namespace %s: %w", s.Object.Namespace, err)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return "namespace " + s.Object.Namespace + " is being deleted", nil
	}
	return "", nil
}

// skipHooks records that the hooks of the removal are skipped.
func (r *Reconciler) skipHooks(s *state, why string, err error) error {
	if err != nil {
		return err
	}
	was := s.Object.Status.Hooks
	r.normal(s, "HooksSkipped", "Remove", fmt.Sprintf("%d hooks of the deletion do not run: %s", was.OnDelete, why))
	s.Object.Status.Hooks = &v1alpha1.HooksStatus{
		Operation: v1alpha1.HookDelete, Run: was.Run, Revision: was.Revision, Removed: true, FinishedTime: new(pipeline.StatusTime(s.Now)),
	}
	return nil
}
