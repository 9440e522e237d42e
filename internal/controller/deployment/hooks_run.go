// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/hooks"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// longestHookMessage bounds the message of a failed hook, in bytes.
const longestHookMessage = 1024

// hooksPending tells that hooks of the operation still have to run.
func (s *state) hooksPending() bool {
	record := s.Object.Status.Hooks
	return record != nil && record.FinishedTime == nil
}

// runHooks runs the hooks before, or after, the operation, one after the other. It does not
// block: it returns the hook that is waited for, "" when all have completed.
func (r *Reconciler) runHooks(ctx context.Context, s *state, hooks []plan.HookObject, after bool) (waits string, err error) {
	if s.Keeping || !s.hooksPending() {
		return "", nil
	}
	record := s.Object.Status.Hooks
	if record.Failed != nil {
		if !after && comesAfter(record.Failed.Event) {
			return "", nil // the drift of the objects is corrected all the same
		}
		return "", s.hookFailure(record.Failed)
	}
	runs := plan.HookRuns(hooks, plan.Operation(record.Operation))
	before := len(part(runs, false))
	end := before
	if after {
		end = len(runs)
	}
	for int(s.Object.Status.Hooks.Completed) < end { // a write replaces the status
		if waits, err := r.advance(ctx, s, runs); waits != "" || err != nil {
			return waits, err
		}
	}
	record = s.Object.Status.Hooks
	if begun := int(record.Completed) > before || record.Running != nil; after || !begun {
		return "", r.tidy(ctx, s, part(runs, after))
	}
	return "", nil
}

// advance runs the next hook as far as possible now. Each action is stored before it
// happens, so that it is known after a crash.
func (r *Reconciler) advance(ctx context.Context, s *state, runs []plan.HookRun) (waits string, err error) {
	run := runs[s.Object.Status.Hooks.Completed]
	if err := r.announceHook(ctx, s, run); err != nil {
		return "", err
	}
	if s.Object.Status.Hooks.Running.UID == "" {
		waits, err := r.start(ctx, s, runs)
		if waits != "" || err != nil {
			return waits, err
		}
	}
	uid := s.Object.Status.Hooks.Running.UID
	how, err := r.hookRunner(s).Look(ctx, run.HookObject, uid)
	switch {
	case err != nil:
		return "", err
	case how.Done:
		record := s.Object.Status.Hooks
		record.Completed, record.Running = record.Completed+1, nil
		r.normal(s, "HookCompleted", "Hook", run.String()+" of revision "+record.Revision+" has run")
		return "", s.Write(ctx, r.writer)
	case how.Ended():
		return "", r.failHook(ctx, s, runs, how.Message)
	case s.hookOverdue():
		return "", r.failHook(ctx, s, runs, fmt.Sprintf("it did not end within spec.timeout (%s): %s", s.Object.Spec.TimeoutOrDefault(), how.Message))
	}
	s.delivered.Hooks.At = &stage.HookWait{Run: withoutContent(run), UID: uid}
	return hookText(run, how), nil
}

// announceHook stores that a hook is about to run, and lists its object in the inventory,
// unless that is stored already.
func (r *Reconciler) announceHook(ctx context.Context, s *state, run plan.HookRun) error {
	record := s.Object.Status.Hooks
	if record.Running != nil {
		return nil
	}
	record.Running = &v1alpha1.RunningHook{HookReference: referenceTo(run), StartedTime: pipeline.StatusTime(s.Now)}
	if err := s.keepHook(run); err != nil {
		return err
	}
	return s.Write(ctx, r.writer)
}

// start creates the object of the next hook.
func (r *Reconciler) start(ctx context.Context, s *state, runs []plan.HookRun) (waits string, err error) {
	record := s.Object.Status.Hooks
	run := runs[record.Completed]
	// A hook of two events of one operation runs for each.
	start, err := r.hookRunner(s).Start(ctx, run.HookObject, shortDigest("satchel.dev/hook-run/v1", record.Run, run.Event))
	switch late := s.hookOverdue(); {
	case err == nil && start.Refused != nil:
		return "", r.failHook(ctx, s, runs, "it could not be created: "+start.Refused.Message)
	case late && err != nil:
		return "", r.failHook(ctx, s, runs, err.Error())
	case late && start.Waiting != "":
		return "", r.failHook(ctx, s, runs, start.Waiting)
	case err != nil:
		return "", err
	case start.Waiting != "":
		return run.String() + " is about to run: " + start.Waiting, nil
	}
	record.Running.UID, record.Running.StartedTime = string(start.UID), pipeline.StatusTime(s.Now) // the time for it begins now
	return "", s.Write(ctx, r.writer)
}

func hookText(run plan.HookRun, how health.Completion) string {
	return "waiting for the " + run.String() + ": " + how.Message
}

// bare is a run without content.
func withoutContent(run plan.HookRun) plan.HookRun {
	run.Desired = nil
	return run
}

// hookOverdue tells that the time for the hook that runs is over.
func (s *state) hookOverdue() bool {
	running := s.Object.Status.Hooks.Running
	return running != nil && s.Now.Sub(running.StartedTime.Time) > s.Object.Spec.TimeoutOrDefault()
}

// failHook records that the running hook failed, and deletes the objects of hooks as the
// delete policies of it and of the earlier ones say.
func (r *Reconciler) failHook(ctx context.Context, s *state, runs []plan.HookRun, message string) error {
	record := s.Object.Status.Hooks
	run := runs[record.Completed]
	message = r.cleaner(ctx, s).Text(message)
	failed := &v1alpha1.FailedHook{
		HookReference: referenceTo(run), Message: pipeline.Shorten(message, longestHookMessage),
		Generation: s.Object.Generation, Requested: pipeline.Requested(s.Object),
	}
	if of := s.resolved.Record(&s.Subject); of != nil && !s.resolved.Edits(&s.Subject, of) { // an edited revision is counted from the first
		failed.Attempts = of.Attempts
	}
	record.Failed, record.Running = failed, nil
	if err := s.Write(ctx, r.writer); err != nil {
		return err
	}
	r.warning(s, "HookFailed", "Hook", run.String()+" of revision "+record.Revision+" failed: "+failed.Message)
	if slices.Contains(run.Policies, plan.HookFailed) {
		if err := r.clear(ctx, s, run.ID); err != nil {
			return err
		}
	}
	var done []plan.HookRun
	for _, earlier := range runs[:record.Completed] {
		if earlier.Event == run.Event && earlier.ID != run.ID {
			done = append(done, earlier)
		}
	}
	if err := r.tidy(ctx, s, done); err != nil {
		return err
	}
	return s.hookFailure(failed)
}

// tidy deletes the objects of hooks with the policy to delete them after success, the last one
// first, since it may depend on the earlier ones.
func (r *Reconciler) tidy(ctx context.Context, s *state, runs []plan.HookRun) error {
	for _, run := range slices.Backward(runs) {
		if slices.Contains(run.Policies, plan.HookSucceeded) {
			if err := r.clear(ctx, s, run.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear deletes the object of a hook if the inventory lists it. An object that is not gone
// at once stays listed: it is deleted later, or with the deployment.
func (r *Reconciler) clear(ctx context.Context, s *state, id inventory.ID) error {
	if !s.listed.Inventory.Has(id) {
		return nil
	}
	gone, err := r.hookRunner(s).Clear(ctx, id)
	if err != nil || !gone {
		return err
	}
	return s.dropHook(id)
}

// keepHook lists the object of a hook in the inventory.
func (s *state) keepHook(run plan.HookRun) error {
	return s.noteHook(run.ID, &inventory.Entry{ID: run.ID, Version: run.Resource.Version, Mark: inventory.RunOnce})
}

// dropHook removes the object of a hook, which is gone, from the inventory.
func (s *state) dropHook(id inventory.ID) error { return s.noteHook(id, nil) }

func (s *state) noteHook(id inventory.ID, entry *inventory.Entry) error {
	if s.delivered.Hooks.Entries == nil {
		s.delivered.Hooks.Entries = map[inventory.ID]*inventory.Entry{}
	}
	s.delivered.Hooks.Entries[id] = entry
	return s.listed.Record(&s.Subject, s.withHooks(s.listed.Inventory))
}

// withHooks is an inventory with the changes by hooks in this reconcile.
func (s *state) withHooks(of inventory.Inventory) inventory.Inventory {
	var with []inventory.Entry
	var without []inventory.ID
	for id, entry := range s.delivered.Hooks.Entries {
		if entry == nil {
			without = append(without, id)
		} else {
			with = append(with, *entry)
		}
	}
	return of.Without(without...).With(with...)
}

// sameHook tells that the apply waits for the same hook as before, or for none. Each hook
// has the whole timeout.
func (s *state) sameHook() bool {
	if s.note.Applying.Hook == nil || s.delivered.Hooks.At == nil {
		return s.note.Applying.Hook == nil && s.delivered.Hooks.At == nil
	}
	return s.note.Applying.Hook.UID == s.delivered.Hooks.At.UID
}

// stillRuns checks only the hook that an apply waits for, while it has not ended.
func (r *Reconciler) stillRuns(ctx context.Context, s *state) (waits string, err error) {
	at, record := s.note.Applying.Hook, s.Object.Status.Hooks
	if at == nil || record == nil || record.Running == nil || record.Running.UID != at.UID || s.hookOverdue() {
		return "", nil
	}
	how, err := r.hookRunner(s).Look(ctx, at.Run.HookObject, at.UID)
	if err != nil || how.Done || how.Ended() {
		return "", err
	}
	return hookText(at.Run, how), nil
}

// afterHealth runs the hooks after the operation, once all objects are healthy. The revision is
// healthy only after these.
func (r *Reconciler) afterHealth(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.Keeping || s.settled.Health == nil || !s.settled.Health.Healthy() {
		return pipeline.Continue, nil
	}
	if s.hooksPending() {
		waits, err := r.afterwards(ctx, s)
		if s.delivered.Hooks.Waits = waits; waits != "" || err != nil {
			s.delivered.Hooks.Failed = err != nil
			return pipeline.Stop, err
		}
		s.Object.Status.Hooks.FinishedTime = new(pipeline.StatusTime(s.Now))
		if s.decided.Plan != nil {
			s.Object.Status.Hooks.OnDelete = count32(plan.HookRuns(s.decided.Plan.Hooks, plan.Removing))
		}
	}
	s.Object.Status.LastHealthyRevision, s.Object.Status.Package = s.Object.Status.LastAppliedRevision, s.note.Planned.Contains
	r.keepHealthy(s)
	return pipeline.Continue, s.prove()
}

// afterwards runs the hooks after the operation.
func (r *Reconciler) afterwards(ctx context.Context, s *state) (waits string, err error) {
	record := s.Object.Status.Hooks
	if record.Total == 0 && record.Failed == nil {
		return "", nil
	}
	hooks, err := r.appliedHooks(ctx, s)
	if err != nil {
		return "", err
	}
	return r.runHooks(ctx, s, hooks, true)
}

// appliedHooks are the hooks of the applied revision: those of the plan, or else those of
// the snapshot.
func (r *Reconciler) appliedHooks(ctx context.Context, s *state) ([]plan.HookObject, error) {
	if s.decided.Plan != nil {
		return s.decided.Plan.Hooks, nil
	}
	last, found, err := snapshot.Read(r.Snapshots, string(s.Object.UID))
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, fmt.Errorf("what was applied last is not in the controller's cache any more, so its hooks are not known")
	}
	return hooks.Complete(ctx, s.resolved.Access.Client, s.Owner, s.Object.InstallNamespaceOrDefault(), last.Hooks)
}
