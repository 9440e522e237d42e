// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	applyhooks "github.com/satchel-dev/satchel/internal/apply/hooks"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// longestHookMessage bounds the message of a failed hook, in bytes.
const longestHookMessage = 1024

// hooksPending tells that hooks of the operation still have to run.
func (in *Input) hooksPending() bool {
	record := in.Object.Status.Hooks
	return record != nil && record.CompletionTime == nil
}

// Before runs the hooks before the operation. It returns the hook that is waited for, "" when all have completed.
func (r *Runner) Before(ctx context.Context, in *Input) (waits string, err error) {
	return r.run(ctx, in, in.Plan.Hooks, false)
}

// After runs the hooks after the operation, and ends it. It tells whether all have completed.
func (r *Runner) After(ctx context.Context, in *Input) (done bool, err error) {
	if !in.hooksPending() {
		return true, nil
	}
	waits, err := r.afterwards(ctx, in)
	if in.Progress.Waits = waits; waits != "" || err != nil {
		in.Progress.Failed = err != nil
		return false, err
	}
	in.Object.Status.Hooks.CompletionTime = new(pipeline.StatusTime(in.Now))
	if in.Plan != nil {
		in.Object.Status.Hooks.OnDelete = count32(plan.HookRuns(in.Plan.Hooks, plan.Removing))
	}
	return true, nil
}

// run runs the hooks before, or after, the operation, one after the other. It does not
// block: it returns the hook that is waited for, "" when all have completed.
func (r *Runner) run(ctx context.Context, in *Input, hooks []plan.HookObject, after bool) (waits string, err error) {
	if in.Keeping || !in.hooksPending() {
		return "", nil
	}
	record := in.Object.Status.Hooks
	if record.Failed != nil {
		if !after && comesAfter(record.Failed.Event) {
			return "", nil // the drift of the objects is corrected all the same
		}
		return "", in.hookFailure(record.Failed)
	}
	runs := plan.HookRuns(hooks, plan.Operation(record.Operation))
	before := len(part(runs, false))
	end := before
	if after {
		end = len(runs)
	}
	for int(in.Object.Status.Hooks.Completed) < end { // a write replaces the status
		if waits, err := r.advance(ctx, in, runs); waits != "" || err != nil {
			return waits, err
		}
	}
	record = in.Object.Status.Hooks
	if begun := int(record.Completed) > before || record.Running != nil; after || !begun {
		return "", r.tidy(ctx, in, part(runs, after))
	}
	return "", nil
}

// advance runs the next hook as far as possible now. Each action is stored before it
// happens, so that it is known after a crash.
func (r *Runner) advance(ctx context.Context, in *Input, runs []plan.HookRun) (waits string, err error) {
	run := runs[in.Object.Status.Hooks.Completed]
	if err := r.announce(ctx, in, run); err != nil {
		return "", err
	}
	if in.Object.Status.Hooks.Running.UID == "" {
		waits, err := r.start(ctx, in, runs)
		if waits != "" || err != nil {
			return waits, err
		}
	}
	uid := in.Object.Status.Hooks.Running.UID
	how, err := in.runner().Look(ctx, run.HookObject, uid)
	switch {
	case err != nil:
		return "", err
	case how.Done:
		record := in.Object.Status.Hooks
		record.Completed, record.Running = record.Completed+1, nil
		r.Events.Normal(in.Subject, "HookCompleted", "Hook", run.String()+" of revision "+record.Revision+" has run")
		return "", in.Write(ctx, r.Writer)
	case how.Ended():
		return "", r.fail(ctx, in, runs, how.Message)
	case in.hookOverdue():
		return "", r.fail(ctx, in, runs, fmt.Sprintf("it did not end within spec.health.timeout (%s): %s", effective.Timeout(&in.Object.Spec), how.Message))
	}
	in.Progress.At = &stage.HookWait{Run: withoutContent(run), UID: uid}
	return hookText(run, how), nil
}

// announce stores that a hook is about to run, and lists its object in the inventory,
// unless that is stored already.
func (r *Runner) announce(ctx context.Context, in *Input, run plan.HookRun) error {
	record := in.Object.Status.Hooks
	if record.Running != nil {
		return nil
	}
	record.Running = &v1alpha1.RunningHook{HookReference: referenceTo(run), StartTime: pipeline.StatusTime(in.Now)}
	if err := in.keepHook(run); err != nil {
		return err
	}
	return in.Write(ctx, r.Writer)
}

// start creates the object of the next hook.
func (r *Runner) start(ctx context.Context, in *Input, runs []plan.HookRun) (waits string, err error) {
	record := in.Object.Status.Hooks
	run := runs[record.Completed]
	// A hook of two events of one operation runs for each.
	start, err := in.runner().Start(ctx, run.HookObject, shortDigest(format.HookRun.Purpose("hook-run"), record.Run, run.Event))
	switch late := in.hookOverdue(); {
	case err == nil && start.Refused != nil:
		return "", r.fail(ctx, in, runs, "it could not be created: "+start.Refused.Message)
	case late && err != nil:
		return "", r.fail(ctx, in, runs, err.Error())
	case late && start.Waiting != "":
		return "", r.fail(ctx, in, runs, start.Waiting)
	case err != nil:
		return "", err
	case start.Waiting != "":
		return run.String() + " is about to run: " + start.Waiting, nil
	}
	record.Running.UID, record.Running.StartTime = string(start.UID), pipeline.StatusTime(in.Now) // the time for it begins now
	return "", in.Write(ctx, r.Writer)
}

// hookOverdue tells that the time for the hook that runs is over.
func (in *Input) hookOverdue() bool {
	running := in.Object.Status.Hooks.Running
	return running != nil && in.Now.Sub(running.StartTime.Time) > effective.Timeout(&in.Object.Spec)
}

// fail records that the running hook failed, and deletes the objects of hooks as the
// delete policies of it and of the earlier ones say.
func (r *Runner) fail(ctx context.Context, in *Input, runs []plan.HookRun, message string) error {
	record := in.Object.Status.Hooks
	run := runs[record.Completed]
	message = r.Clean(ctx, in.Subject, in.Resolved.Access, message)
	failed := &v1alpha1.FailedHook{
		HookReference: referenceTo(run), Message: pipeline.Shorten(message, longestHookMessage),
		Generation: in.Object.Generation, Requested: pipeline.Requested(in.Object),
	}
	if of := in.Resolved.Record(in.Subject); of != nil && !in.Resolved.Edits(in.Subject, of) { // an edited revision is counted from the first
		failed.Attempts = of.Attempts
	}
	record.Failed, record.Running = failed, nil
	if err := in.Write(ctx, r.Writer); err != nil {
		return err
	}
	r.Events.Warning(in.Subject, "HookFailed", "Hook", run.String()+" of revision "+record.Revision+" failed: "+failed.Message)
	if slices.Contains(run.Policies, plan.HookFailed) {
		if err := r.clear(ctx, in, run.ID); err != nil {
			return err
		}
	}
	var done []plan.HookRun
	for _, earlier := range runs[:record.Completed] {
		if earlier.Event == run.Event && earlier.ID != run.ID {
			done = append(done, earlier)
		}
	}
	if err := r.tidy(ctx, in, done); err != nil {
		return err
	}
	return in.hookFailure(failed)
}

// tidy deletes the objects of hooks with the policy to delete them after success, the last one
// first, since it may depend on the earlier ones.
func (r *Runner) tidy(ctx context.Context, in *Input, runs []plan.HookRun) error {
	for _, run := range slices.Backward(runs) {
		if slices.Contains(run.Policies, plan.HookSucceeded) {
			if err := r.clear(ctx, in, run.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear deletes the object of a hook if the inventory lists it. An object that is not gone
// at once stays listed: it is deleted later, or with the deployment.
func (r *Runner) clear(ctx context.Context, in *Input, id inventory.ID) error {
	if !in.Listed.Inventory().Has(id) {
		return nil
	}
	gone, err := in.runner().Clear(ctx, id)
	if err != nil || !gone {
		return err
	}
	return in.dropHook(id)
}

// StillRuns checks only the hook that an apply waits for, while it has not ended.
func (r *Runner) StillRuns(ctx context.Context, in *Input) (waits string, err error) {
	at, record := in.Waited, in.Object.Status.Hooks
	if at == nil || record == nil || record.Running == nil || record.Running.UID != at.UID || in.hookOverdue() {
		return "", nil
	}
	how, err := in.runner().Look(ctx, at.Run.HookObject, at.UID)
	if err != nil || how.Done || how.Ended() {
		return "", err
	}
	return hookText(at.Run, how), nil
}

// afterwards runs the hooks after the operation.
func (r *Runner) afterwards(ctx context.Context, in *Input) (waits string, err error) {
	record := in.Object.Status.Hooks
	if record.Total == 0 && record.Failed == nil {
		return "", nil
	}
	hooks, err := r.appliedHooks(ctx, in)
	if err != nil {
		return "", err
	}
	return r.run(ctx, in, hooks, true)
}

// appliedHooks are the hooks of the applied revision: those of the plan, or else those of the snapshot, or of the artifact if that
// cannot be used.
func (r *Runner) appliedHooks(ctx context.Context, in *Input) ([]plan.HookObject, error) {
	if in.Plan != nil {
		return in.Plan.Hooks, nil
	}
	last, found, err := snapshot.Read(r.Snapshots, string(in.Object.UID))
	if err == nil && !found {
		err = errors.New("what was applied last is not in the controller's cache any more, so its hooks are not known")
	}
	if err != nil {
		last.Hooks, err = r.Again(ctx, in, err)
	}
	if err != nil {
		return nil, err
	}
	return applyhooks.Complete(ctx, in.Resolved.Access.Client, in.Owner, effective.InstallNamespace(in.Object), last.Hooks)
}

// supersede deletes the running hook of an operation that another one replaces. It returns
// what it waits for.
func (r *Runner) supersede(ctx context.Context, in *Input, was *v1alpha1.HooksStatus) (waits string, err error) {
	if was == nil || was.Running == nil {
		return "", nil
	}
	id := hookID(was.Running.HookReference)
	gone, err := in.runner().Clear(ctx, id)
	switch {
	case err != nil:
		return "", err
	case !gone:
		return fmt.Sprintf("the %s of revision %s is superseded, and is being deleted", plan.HookText(was.Running.Event, id), was.Revision), nil
	}
	return "", in.dropHook(id)
}

func (in *Input) runner() applyhooks.Runner {
	return applyhooks.Runner{Client: in.Resolved.Access.Client, Owner: in.Owner, Rules: in.Rules, Protection: ownership.Protection(effective.CollisionProtection(&in.Object.Spec))}
}
