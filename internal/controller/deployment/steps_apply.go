// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// account gets the client that impersonates the deployment's ServiceAccount.
func (r *Reconciler) account(ctx context.Context, s *state) (pipeline.Outcome, error) {
	var err error
	if s.resolved.access, err = r.accounts().Find(ctx, s.object); err != nil {
		return pipeline.Stop, err
	}
	return pipeline.Continue, nil
}

func (r *Reconciler) accounts() resolve.Accounts {
	return resolve.Accounts{Tenants: r.Tenants, Remotes: r.Remotes, OwnCluster: r.OwnCluster}
}

// target reads the inventory and checks that its objects are in the current target
// cluster.
func (r *Reconciler) target(ctx context.Context, s *state) (pipeline.Outcome, error) {
	current, err := r.accounts().Identify(ctx, s.object, s.resolved.access)
	if err != nil {
		return pipeline.Stop, err
	}
	if s.listed.inventory, err = r.inventory(s); err != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonFailed, Stalled: true, Err: err}
	}
	if s.listed.inventory.Target != "" && s.listed.inventory.Target != current && (s.listed.inventory.Len() > 0 || s.listed.unreadable) {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonTargetChanged, Stalled: true, Err: fmt.Errorf(
			"the objects of the inventory are in the cluster %s, and this is %s: nothing is applied or pruned here; if the objects in the old cluster do not matter, %s",
			s.listed.inventory.Target, current, resolve.WayOut(s.object))}
	}
	s.listed.inventory.Target = current
	if listed := s.object.Status.Inventory; listed != nil && listed.Target == "" && !s.listed.unreadable {
		return pipeline.Continue, s.record(s.listed.inventory)
	}
	return pipeline.Continue, nil
}

// accept stops a deployment with an invalid spec. Drift of its applied revision is still
// corrected.
func (r *Reconciler) accept(_ context.Context, s *state) (pipeline.Outcome, error) {
	if err := s.object.Spec.Problem(); err != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, Err: err}
	}
	return pipeline.Continue, nil
}

// inventory reads the status. If that was lost, as in a restore from a backup, or
// cannot be read during a deletion, the snapshot is used instead, so that nothing is
// orphaned; see recover for further objects.
func (r *Reconciler) inventory(s *state) (inventory.Inventory, error) {
	if s.object.Status.Inventory != nil {
		listed, err := inventory.Decode(s.object.Status.Inventory)
		if err == nil {
			return listed, nil
		}
		if s.object.DeletionTimestamp.IsZero() {
			return inventory.Inventory{}, fmt.Errorf("reading status.inventory: %w", err)
		}
		s.listed.unreadable = true
	}
	last, found, err := snapshot.Read(r.Snapshots, string(s.object.UID))
	if err != nil || !found && len(last.Begun) == 0 {
		return s.unlisted(), err
	}
	s.noted = false // compare with the cluster in any case
	if s.object.Status.LastAppliedRevision == "" {
		s.object.Status.LastAppliedRevision = last.Revision
	}
	return last.Inventory(s.authorityID()), nil
}

// unlisted is an empty inventory; if the one in the status cannot be read, with its
// cluster.
func (s *state) unlisted() inventory.Inventory {
	if !s.listed.unreadable {
		return inventory.Inventory{}
	}
	return inventory.New(s.object.Status.Inventory.Target)
}

// establishTimeout is how long an apply waits for CRDs to be established before it
// releases its worker; usually that is long enough.
const establishTimeout = 2 * time.Second

func (r *Reconciler) options(s *state) apply.Options {
	return apply.Options{
		Earlier:          s.earlier,
		EstablishTimeout: establishTimeout,
		Migrations:       r.migrations,
		Rules:            s.rules,
		Recreate:         !s.keeping && s.object.Spec.Recreate == v1alpha1.RecreateOnImmutableChange,
	}
}

// objectErrors joins the errors of objects, a line each.
func objectErrors(failed []*objecterror.Error) error {
	lines := make([]string, 0, len(failed))
	for _, f := range failed {
		lines = append(lines, f.Error())
	}
	return errors.New(strings.Join(lines, "\n"))
}

// objectErrors joins the errors of objects, with a hint if a webhook of the bundle blocks them.
func (s *state) objectErrors(ctx context.Context, failed []*objecterror.Error) error {
	return errors.New(objectErrors(failed).Error() + removal.UnreachableWebhooks(ctx, s.resolved.access.Client, s.owner, s.listed.inventory, failed))
}

// remember stores the inventory, previous and planned together, before the first write:
// after a crash every written object is listed.
func (r *Reconciler) remember(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.due {
		return pipeline.Continue, nil
	}
	if err := r.beginPlan(s); err != nil {
		return pipeline.Stop, err
	}
	s.delivered.unbegun = before{executed: s.object.Status.Executed, encoded: s.object.Status.Inventory, inventory: s.listed.inventory, hooks: s.stored.Status.Hooks}
	if err := s.record(s.withHooks(s.decided.plan.Inventory)); err != nil {
		return pipeline.Stop, err
	}
	if !s.keeping {
		r.approvals().Begin(s.decided.consent, s.object, s.now)
	}
	s.did(v1alpha1.PlannedCondition)
	announce(s)
	err := r.write(ctx, s)
	if err != nil { // or the status of the failure would contain what could not be stored
		s.object.Status.Inventory, s.object.Status.Executed, s.object.Status.Hooks = s.stored.Status.Inventory, s.stored.Status.Executed, s.stored.Status.Hooks
	}
	return pipeline.Continue, err
}

// apply executes the plan, stage by stage.
func (r *Reconciler) apply(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.due {
		return pipeline.Continue, nil
	}
	r.recordConflicts(ctx, s, *s.decided.plan)
	r.watches.Expect(client.ObjectKeyFromObject(s.object), s.expectation())
	options := r.options(s)
	options.Before = func(ctx context.Context) (string, error) { return r.runHooks(ctx, s, s.decided.plan.Hooks, false) }
	result, err := apply.Apply(ctx, s.resolved.access.Client, *s.decided.plan, options)
	s.delivered.applied = &result
	if recorded := s.record(s.withHooks(result.Inventory)); recorded != nil {
		return pipeline.Stop, recorded
	}
	if err != nil {
		return pipeline.Stop, err
	}
	s.warnings = append(s.warnings, result.Warnings...)
	if s.keeping {
		s.leaveOutFailed(result.Errors())
		if result.Pending != "" {
			s.decided.leftOut = append(s.decided.leftOut, result.Pending)
		}
		return pipeline.Continue, nil
	}
	if failed := result.Errors(); len(failed) > 0 {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonApplyFailed, Err: s.objectErrors(ctx, failed)}
	}
	if !result.Complete() {
		s.holdPhase(result.Waits)
		s.wait(result.Pending)
		return pipeline.Stop, nil
	}
	return pipeline.Continue, r.settle(s)
}

// wait records what an apply waits for, and since when.
func (s *state) wait(what string) {
	s.delivered.waitsFor = what
	n := note{uid: s.object.UID, attempt: s.attempt(), applying: applyingNote{
		wrote: s.note.applying.wrote, waits: s.now, phase: s.delivered.phase, phaseSince: s.now, hook: s.delivered.hookAt,
	}}
	if s.note.attempt == n.attempt && !s.note.applying.waits.IsZero() && s.sameHook() {
		n.applying.waits, n.applying.pauses = s.note.applying.waits, s.note.applying.pauses
	}
	s.note = n
}

// settle records that the revision is applied.
func (r *Reconciler) settle(s *state) error {
	s.did(v1alpha1.AppliedCondition)
	if s.keeping {
		return nil
	}
	status := &s.object.Status
	if status.LastAppliedRevision != s.revision() || s.decided.plan.Count(plan.Create, plan.Adopt, plan.Update, plan.Recreate) > 0 || status.LastAppliedTime == nil {
		status.LastAppliedTime = new(pipeline.StatusTime(s.now))
	}
	status.LastAppliedRevision = s.revision()
	if err := r.Artifacts.Keep(string(s.object.UID), s.worthKeeping()...); err != nil {
		return err
	}
	return r.saveSnapshot(s)
}
