// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/hooks"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// operate determines the operation of the plan. It stops an operation with a hook that
// failed before anything was applied: the applied revision stays.
func (r *Reconciler) operate(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due || s.Keeping {
		return pipeline.Continue, nil
	}
	was, recovered := s.Object.Status.Hooks, s.endRecovery()
	switch {
	case was == nil && len(s.decided.Plan.Hooks) == 0:
		return pipeline.Continue, nil
	case was != nil && r.continues(s, was):
		s.retryHooks(was)
	default:
		waits, err := r.supersede(ctx, s, was)
		if waits != "" {
			s.wait(waits)
		}
		if waits != "" || err != nil {
			return pipeline.Stop, err
		}
		s.Object.Status.Hooks = r.newOperation(s, was)
		if recovered && was == nil {
			s.Object.Status.Hooks.Completed, s.Object.Status.Hooks.FinishedTime = s.Object.Status.Hooks.Total, new(pipeline.StatusTime(s.Now))
		}
	}
	if failed := s.Object.Status.Hooks.Failed; failed != nil && !comesAfter(failed.Event) {
		return pipeline.Stop, s.hookFailure(failed)
	}
	return pipeline.Continue, nil
}

// continues tells whether the plan belongs to the operation in the status, or to its
// result. If the key was lost, changes of Secret values cannot be detected: then the same
// artifact and spec count as the same operation.
func (r *Reconciler) continues(s *state, was *v1alpha1.HooksStatus) bool {
	key := s.keyID()
	if was.Key == key {
		return was.Material == s.rendered.Material
	}
	if was.Digest != s.resolved.Artifact.Digest || was.Generation != s.Object.Generation {
		return false
	}
	was.Key, was.Material = key, s.rendered.Material
	return true
}

// keyID identifies a hash key without revealing it.
func (s *state) keyID() string { return shortDigest("satchel.dev/key-id/v1", string(s.HashKey)) }

func shortDigest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:8])
}

// endRecovery tells whether the plan is for the revision that had been applied before the status was lost, as far as that is
// known: no hook runs for it. Another revision is an upgrade. Later plans have a status again.
func (s *state) endRecovery() bool {
	listed, last := s.Object.Status.Inventory, s.Object.Status.LastAppliedRevision
	if listed == nil || !listed.Recovered {
		return false
	}
	listed.Recovered = false
	return last == "" || last == s.resolved.Revision()
}

// newOperation is the operation of the plan, before its first hook.
func (r *Reconciler) newOperation(s *state, was *v1alpha1.HooksStatus) *v1alpha1.HooksStatus {
	operation, former, onDelete := plan.Upgrade, "", count32(plan.HookRuns(s.decided.Plan.Hooks, plan.Removing))
	if was != nil {
		former, onDelete = was.Run, max(onDelete, was.OnDelete) // the hooks of the applied revision count until the operation is over
	}
	if s.Object.Status.LastAppliedRevision == "" {
		operation = s.decided.Plan.First()
		if was != nil && was.Operation == v1alpha1.HookTakeOver {
			operation = plan.TakeOver
		}
	}
	record := &v1alpha1.HooksStatus{
		Operation: v1alpha1.HookOperation(operation), Revision: s.resolved.Revision(), Digest: s.resolved.Artifact.Digest, Generation: s.Object.Generation,
		Material: s.rendered.Material, Key: s.keyID(),
		Run:      shortDigest("satchel.dev/hook-run/v1", string(s.Object.UID), string(operation), s.rendered.Material, former),
		Total:    count32(plan.HookRuns(s.decided.Plan.Hooks, operation)),
		OnDelete: onDelete,
	}
	return record
}

func count32(runs []plan.HookRun) int32 {
	return int32(len(runs)) //nolint:gosec // G115: bounded by the objects of a bundle
}

// supersede deletes the running hook of an operation that another one replaces. It returns
// what it waits for.
func (r *Reconciler) supersede(ctx context.Context, s *state, was *v1alpha1.HooksStatus) (waits string, err error) {
	if was == nil || was.Running == nil {
		return "", nil
	}
	id := hookID(was.Running.HookReference)
	gone, err := r.hookRunner(s).Clear(ctx, id)
	switch {
	case err != nil:
		return "", err
	case !gone:
		return fmt.Sprintf("the %s of revision %s is superseded, and is being deleted", plan.HookText(was.Running.Event, id), was.Revision), nil
	}
	return "", s.dropHook(id)
}

// retryHooks runs the hooks of the failed event again when that is requested.
func (s *state) retryHooks(was *v1alpha1.HooksStatus) {
	failed := was.Failed
	if failed == nil || failed.Generation == s.Object.Generation && failed.Requested == pipeline.Requested(s.Object) && !s.triesHooksAgain(failed) {
		return
	}
	s.rewind(was, s.decided.Plan.Hooks)
}

// rewind goes back to the first hook of the failed event, as a new run.
func (s *state) rewind(was *v1alpha1.HooksStatus, hooks []plan.HookObject) {
	was.Completed = 0
	if comesAfter(was.Failed.Event) {
		was.Completed = count32(part(plan.HookRuns(hooks, plan.Operation(was.Operation)), false))
	}
	was.Run, was.Failed = shortDigest("satchel.dev/hook-run/v1", was.Run), nil
}

// triesHooksAgain tells whether remediation retries the revision.
func (s *state) triesHooksAgain(failed *v1alpha1.FailedHook) bool {
	record := s.resolved.Record(&s.Subject)
	return record != nil && s.Object.Spec.RollsBack() && record.Attempts > failed.Attempts && record.Attempts <= s.Object.Spec.Remediation.Retries
}

// part selects the runs before, or after, the operation.
func part(runs []plan.HookRun, after bool) []plan.HookRun {
	var chosen []plan.HookRun
	for _, run := range runs {
		if run.After == after {
			chosen = append(chosen, run)
		}
	}
	return chosen
}

func comesAfter(event string) bool { return strings.HasPrefix(event, "post-") }

func hookID(of v1alpha1.HookReference) inventory.ID {
	return inventory.ID{Group: of.Group, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name}
}

func referenceTo(run plan.HookRun) v1alpha1.HookReference {
	return v1alpha1.HookReference{Event: run.Event, Group: run.Group, Kind: run.ID.Kind, Namespace: run.Namespace, Name: run.Name}
}

func (r *Reconciler) hookRunner(s *state) hooks.Runner {
	return hooks.Runner{Client: s.resolved.Access.Client, Owner: s.Owner, Rules: s.Rules, Protection: ownership.Protection(s.Object.Spec.CollisionProtectionOrDefault())}
}

// hookFailure is the failure of a revision, or of a removal, by a failed hook.
func (s *state) hookFailure(failed *v1alpha1.FailedHook) error {
	text := fmt.Sprintf("%s failed: %s", plan.HookText(failed.Event, hookID(failed.HookReference)), failed.Message)
	switch {
	case !s.Object.DeletionTimestamp.IsZero():
		return failure.Error{Reason: v1alpha1.ReasonHookFailed, Err: fmt.Errorf(
			"%s.\nNothing more is removed until it has run. Try it again with satchel reconcile %s -n %s; to remove without it, annotate the BundleDeployment with %s: Skip; to keep what is installed, set spec.deletionPolicy to Orphan",
			text, s.Object.Name, s.Object.Namespace, v1alpha1.DeleteHooksAnnotation)}
	case s.resolved.Retries(&s.Subject) && failed.Attempts < s.Object.Spec.Remediation.Retries:
		return failure.Error{Reason: v1alpha1.ReasonHookFailed, Err: fmt.Errorf("%s", text)}
	}
	return failure.Error{Reason: v1alpha1.ReasonHookFailed, Stalled: true, Err: fmt.Errorf(
		"%s.\nIt runs again when the source has another revision, the spec changes, or a reconcile is requested", text)}
}

// failedHook is the failed hook in the status; nil for none.
func (s *state) failedHook() *v1alpha1.FailedHook {
	if s.Object.Status.Hooks == nil {
		return nil
	}
	return s.Object.Status.Hooks.Failed
}
