// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/plural"
)

// BeforeRemoval runs the hooks before the first deletion. It tells whether all have completed.
func (r *Runner) BeforeRemoval(ctx context.Context, in *Input) (done bool, err error) {
	record := in.Object.Status.Hooks
	if !in.hasDeleteHooks() || record.Removed {
		return true, nil
	}
	return r.deletionHooks(ctx, in, false)
}

// AfterRemoval runs the hooks after the last deletion, and tells whether all have completed. Then their objects can be
// removed.
func (r *Runner) AfterRemoval(ctx context.Context, in *Input) (done bool, err error) {
	in.Object.Status.Hooks.Removed = true
	if done, err := r.deletionHooks(ctx, in, true); !done || err != nil {
		return false, err
	}
	if record := in.Object.Status.Hooks; record.CompletionTime == nil {
		record.CompletionTime = new(pipeline.StatusTime(in.Now))
	}
	return true, nil
}

// PendingAfterRemoval tells that hooks have to run after the last deletion.
func PendingAfterRemoval(in *Input) bool {
	return in.hasDeleteHooks() && in.Object.Status.Hooks.CompletionTime == nil
}

// hasDeleteHooks tells whether the removal has hooks: only a bundle that was applied once
// has.
func (in *Input) hasDeleteHooks() bool {
	record := in.Object.Status.Hooks
	return record != nil && (record.OnDelete > 0 || record.Operation == v1alpha1.HookDelete) && in.Object.Status.Applied.Revision != ""
}

// BetweenHooks tells that the objects are gone and hooks of the removal still have to run.
func BetweenHooks(object *v1alpha1.BundleDeployment) bool {
	record := object.Status.Hooks
	return record != nil && record.Operation == v1alpha1.HookDelete && record.Removed && record.CompletionTime == nil
}

// deletionHooks runs the hooks before, or after, the deletion. If hooks are skipped, by the
// annotation, because everything is kept, or because the namespace is being deleted, all
// count as done. It tells whether all have completed.
func (r *Runner) deletionHooks(ctx context.Context, in *Input, after bool) (done bool, err error) {
	if why, err := r.skips(ctx, in); err != nil || why != "" {
		return err == nil, r.skip(in, why, err)
	}
	hooks, err := r.appliedHooks(ctx, in)
	if err != nil {
		return false, failure.Error{Reason: v1alpha1.ReasonHookFailed, Err: fmt.Errorf(
			"the hooks that run when this BundleDeployment is deleted cannot be run: %w.\nTo remove without them, annotate the BundleDeployment with %s: Skip", err, v1alpha1.DeleteHooksAnnotation)}
	}
	waits, err := r.beginDeletion(ctx, in, hooks)
	if waits == "" && err == nil {
		waits, err = r.run(ctx, in, hooks, after)
	}
	if in.Progress.Waits = waits; waits != "" || err != nil {
		return false, err
	}
	return true, nil
}

// beginDeletion makes the removal the current operation, or runs the hooks of the failed event
// again when that is requested. It returns what it waits for.
func (r *Runner) beginDeletion(ctx context.Context, in *Input, hooks []plan.HookObject) (waits string, err error) {
	was := in.Object.Status.Hooks
	if was.Operation == v1alpha1.HookDelete {
		if failed := was.Failed; failed != nil && (failed.Generation != in.Object.Generation || failed.Requested != pipeline.Requested(in.Object)) {
			in.rewind(was, hooks)
		}
		return "", nil
	}
	if waits, err := r.supersede(ctx, in, was); waits != "" || err != nil {
		return waits, err
	}
	in.Object.Status.Hooks = &v1alpha1.HooksStatus{
		Operation: v1alpha1.HookDelete, Revision: was.Revision, Digest: was.Digest, Generation: in.Object.Generation, Key: was.Key, Material: was.Material,
		Run:   shortDigest(format.HookRun.Purpose("hook-run"), string(in.Object.UID), string(plan.Removing), was.Material, was.Run),
		Total: count32(plan.HookRuns(hooks, plan.Removing)), OnDelete: was.OnDelete, Removed: was.Removed,
	}
	return "", nil
}

// skips says why the hooks of the removal are skipped; "" when they run.
func (r *Runner) skips(ctx context.Context, in *Input) (why string, err error) {
	if strings.EqualFold(in.Object.Annotations[v1alpha1.DeleteHooksAnnotation], "Skip") {
		return "the annotation " + v1alpha1.DeleteHooksAnnotation + " says so", nil
	}
	if pruning, err := r.Approvals.AllowedPruning(ctx, in.Object); err != nil || pruning.Orphan {
		return "everything is kept", err
	}
	var namespace corev1.Namespace
	if err := r.Live.Get(ctx, types.NamespacedName{Name: in.Object.Namespace}, &namespace); err != nil {
		return "", fmt.Errorf("reading namespace %s: %w", in.Object.Namespace, err)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return "namespace " + in.Object.Namespace + " is being deleted", nil
	}
	return "", nil
}

// skip records that the hooks of the removal are skipped.
func (r *Runner) skip(in *Input, why string, err error) error {
	if err != nil {
		return err
	}
	was := in.Object.Status.Hooks
	r.Events.Normal(in.Subject, "HooksSkipped", "Remove", fmt.Sprintf("%s of the deletion %s not run: %s", plural.Of(int(was.OnDelete), "hook"), plural.Choose(int(was.OnDelete), "does", "do"), why))
	in.Object.Status.Hooks = &v1alpha1.HooksStatus{
		Operation: v1alpha1.HookDelete, Run: was.Run, Revision: was.Revision, Removed: true, CompletionTime: new(pipeline.StatusTime(in.Now)),
	}
	return nil
}
