// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Begin determines the operation of the plan. It stops an operation with a hook that
// failed before anything was applied: the applied revision stays. It returns the hook of an earlier operation that is waited
// for.
func (r *Runner) Begin(ctx context.Context, in *Input) (waits string, err error) {
	if !in.Resolved.Due || in.Keeping {
		return "", nil
	}
	was, recovered := in.Object.Status.Hooks, in.endRecovery()
	switch {
	case was == nil && len(in.Plan.Hooks) == 0:
		return "", nil
	case was != nil && r.continues(in, was):
		in.retryHooks(was)
	default:
		if waits, err := r.supersede(ctx, in, was); waits != "" || err != nil {
			return waits, err
		}
		in.Object.Status.Hooks = r.newOperation(in, was)
		if recovered && was == nil {
			in.Object.Status.Hooks.Completed, in.Object.Status.Hooks.CompletionTime = in.Object.Status.Hooks.Total, new(pipeline.StatusTime(in.Now))
		}
	}
	if failed := in.Object.Status.Hooks.Failed; failed != nil && !comesAfter(failed.Event) {
		return "", in.hookFailure(failed)
	}
	return "", nil
}

// continues tells whether the plan belongs to the operation in the status, or to its
// result. If the key was lost, changes of Secret values cannot be detected: then the same
// artifact and spec count as the same operation.
func (r *Runner) continues(in *Input, was *v1alpha1.HooksStatus) bool {
	key := in.keyID()
	if was.Key == key {
		return was.Material == in.Material
	}
	if was.Digest != in.Resolved.Artifact.Digest || was.Generation != in.Object.Generation {
		return false
	}
	was.Key = key
	was.Material = in.Material
	was.Inputs = in.Resolved.Inputs.Digest
	return true
}

// keyID identifies a hash key without revealing it.
func (in *Input) keyID() string {
	return shortDigest(format.Plan.Purpose("key-id"), string(in.HashKey))
}

// endRecovery tells whether the plan is for the revision that had been applied before the status was lost, as far as that is
// known: no hook runs for it. Another revision is an upgrade. Later plans have a status again.
func (in *Input) endRecovery() bool {
	listed, last := in.Object.Status.Inventory, in.Object.Status.Applied.Revision
	if listed == nil || !listed.Recovered {
		return false
	}
	listed.Recovered = false
	return last == "" || last == in.Resolved.Revision()
}

// newOperation is the operation of the plan, before its first hook.
func (r *Runner) newOperation(in *Input, was *v1alpha1.HooksStatus) *v1alpha1.HooksStatus {
	operation := plan.Upgrade
	former := ""
	onDelete := count32(plan.HookRuns(in.Plan.Hooks, plan.Removing))
	if was != nil {
		former, onDelete = was.Run, max(onDelete, was.OnDelete) // the hooks of the applied revision count until the operation is over
	}
	if in.Object.Status.Applied.Revision == "" {
		operation = in.Plan.First()
		if was != nil && was.Operation == v1alpha1.HookAdopt {
			operation = plan.Adopting
		}
	}
	record := &v1alpha1.HooksStatus{
		Operation: v1alpha1.HookOperation(operation), Revision: in.Resolved.Revision(), Digest: in.Resolved.Artifact.Digest, Generation: in.Object.Generation,
		Material: in.Material, Content: in.Content, Inputs: in.Resolved.Inputs.Digest, Key: in.keyID(),
		Run:      shortDigest(format.HookRun.Purpose("hook-run"), string(in.Object.UID), string(operation), in.Material, former),
		Total:    count32(plan.HookRuns(in.Plan.Hooks, operation)),
		OnDelete: onDelete,
	}
	return record
}

// retryHooks runs the hooks of the failed event again when that is requested.
func (in *Input) retryHooks(was *v1alpha1.HooksStatus) {
	failed := was.Failed
	if failed == nil || failed.Generation == in.Object.Generation && failed.Requested == pipeline.Requested(in.Object) && !in.triesHooksAgain(failed) {
		return
	}
	in.rewind(was, in.Plan.Hooks)
}

// rewind goes back to the first hook of the failed event, as a new run.
func (in *Input) rewind(was *v1alpha1.HooksStatus, hooks []plan.HookObject) {
	was.Completed = 0
	if comesAfter(was.Failed.Event) {
		was.Completed = count32(part(plan.HookRuns(hooks, plan.Operation(was.Operation)), false))
	}
	was.Run, was.Failed = shortDigest(format.HookRun.Purpose("hook-run"), was.Run), nil
}

// triesHooksAgain tells whether remediation retries the revision.
func (in *Input) triesHooksAgain(failed *v1alpha1.FailedHook) bool {
	record := in.Resolved.Record(in.Subject)
	return record != nil && effective.RollsBack(&in.Object.Spec) && record.Attempts > failed.Attempts && record.Attempts <= in.Object.Spec.Remediation.Retries
}
