// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// account gets the client that impersonates the deployment's ServiceAccount.
func (r *Reconciler) account(ctx context.Context, s *state) (pipeline.Outcome, error) {
	var err error
	if s.resolved.Access, err = r.accounts().Find(ctx, s.Object); err != nil {
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
	current, err := r.accounts().Identify(ctx, s.Object, s.resolved.Access)
	if err != nil {
		return pipeline.Stop, err
	}
	if s.listed.Inventory, err = r.inventory(s); err != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonFailed, Stalled: true, Err: err}
	}
	if s.listed.Inventory.Target != "" && s.listed.Inventory.Target != current && (s.listed.Inventory.Len() > 0 || s.listed.Unreadable) {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonTargetChanged, Stalled: true, Err: fmt.Errorf(
			"the objects of the inventory are in the cluster %s, and this is %s: nothing is applied or pruned here; if the objects in the old cluster do not matter, %s",
			s.listed.Inventory.Target, current, resolve.WayOut(s.Object))}
	}
	s.listed.Inventory.Target = current
	if listed := s.Object.Status.Inventory; listed != nil && listed.Target == "" && !s.listed.Unreadable {
		return pipeline.Continue, s.listed.Record(&s.Subject, s.listed.Inventory)
	}
	return pipeline.Continue, nil
}

// accept stops a deployment with an invalid spec. Drift of its applied revision is still
// corrected.
func (r *Reconciler) accept(_ context.Context, s *state) (pipeline.Outcome, error) {
	if err := s.Object.Spec.Problem(); err != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, Err: err}
	}
	return pipeline.Continue, nil
}

// inventory reads the status. If that was lost, as in a restore from a backup, or
// cannot be read during a deletion, the snapshot is used instead, so that nothing is
// orphaned; see recover for further objects.
func (r *Reconciler) inventory(s *state) (inventory.Inventory, error) {
	if s.Object.Status.Inventory != nil {
		listed, err := inventory.Decode(s.Object.Status.Inventory)
		if err == nil {
			return listed, nil
		}
		if s.Object.DeletionTimestamp.IsZero() {
			return inventory.Inventory{}, fmt.Errorf("reading status.inventory: %w", err)
		}
		s.listed.Unreadable = true
	}
	last, found, err := snapshot.Read(r.Snapshots, string(s.Object.UID))
	if err != nil || !found && len(last.Begun) == 0 {
		return s.unlisted(), err
	}
	s.note.Known = false // compare with the cluster in any case
	if s.Object.Status.LastAppliedRevision == "" {
		s.Object.Status.LastAppliedRevision = last.Revision
	}
	return last.Inventory(s.AuthorityID()), nil
}

// unlisted is an empty inventory; if the one in the status cannot be read, with its
// cluster.
func (s *state) unlisted() inventory.Inventory {
	if !s.listed.Unreadable {
		return inventory.Inventory{}
	}
	return inventory.New(s.Object.Status.Inventory.Target)
}

// establishTimeout is how long an apply waits for CRDs to be established before it
// releases its worker; usually that is long enough.
const establishTimeout = 2 * time.Second

func (r *Reconciler) options(s *state) apply.Options {
	return apply.Options{
		Earlier:          func(entry inventory.Entry) []*unstructured.Unstructured { return s.rendered.Earlier(&s.Subject, entry) },
		EstablishTimeout: establishTimeout,
		Migrations:       r.migrations,
		Rules:            s.Rules,
		Recreate:         !s.Keeping && s.Object.Spec.Recreate == v1alpha1.RecreateOnImmutableChange,
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
	return errors.New(objectErrors(failed).Error() + removal.UnreachableWebhooks(ctx, s.resolved.Access.Client, s.Owner, s.listed.Inventory, failed))
}

// remember stores the inventory, previous and planned together, before the first write:
// after a crash every written object is listed.
func (r *Reconciler) remember(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due {
		return pipeline.Continue, nil
	}
	if err := r.beginPlan(s); err != nil {
		return pipeline.Stop, err
	}
	s.delivered.Unbegun = stage.Unbegun{Executed: s.Object.Status.Executed, Encoded: s.Object.Status.Inventory, Inventory: s.listed.Inventory, Hooks: s.Stored.Status.Hooks}
	if err := s.listed.Record(&s.Subject, s.withHooks(s.decided.Plan.Inventory)); err != nil {
		return pipeline.Stop, err
	}
	if !s.Keeping {
		r.approvals().Begin(s.decided.Consent, s.Object, s.Now)
	}
	s.decided.Accepted = true
	announce(s)
	err := s.Write(ctx, r.writer)
	if err != nil { // or the status of the failure would contain what could not be stored
		s.Object.Status.Inventory, s.Object.Status.Executed, s.Object.Status.Hooks = s.Stored.Status.Inventory, s.Stored.Status.Executed, s.Stored.Status.Hooks
	}
	return pipeline.Continue, err
}

// apply executes the plan, stage by stage.
func (r *Reconciler) apply(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due {
		return pipeline.Continue, nil
	}
	r.recordConflicts(ctx, s, *s.decided.Plan)
	r.watches.Expect(s.Key(), s.expectation())
	options := r.options(s)
	options.Before = func(ctx context.Context) (string, error) { return r.runHooks(ctx, s, s.decided.Plan.Hooks, false) }
	result, err := apply.Apply(ctx, s.resolved.Access.Client, *s.decided.Plan, options)
	s.delivered.Applied = &result
	if recorded := s.listed.Record(&s.Subject, s.withHooks(result.Inventory)); recorded != nil {
		return pipeline.Stop, recorded
	}
	if err != nil {
		return pipeline.Stop, err
	}
	s.delivered.Warnings = append(s.delivered.Warnings, result.Warnings...)
	if s.Keeping {
		s.leaveOutFailed(result.Errors())
		if result.Pending != "" {
			s.decided.LeftOut = append(s.decided.LeftOut, result.Pending)
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
	s.delivered.WaitsFor = what
	n := stage.Note{UID: s.Object.UID, Attempt: s.resolved.Attempt(&s.Subject), Applying: stage.ApplyingNote{
		Wrote: s.note.Applying.Wrote, Waits: s.Now, Phase: s.delivered.Phase, PhaseSince: s.Now, Hook: s.delivered.Hooks.At,
	}}
	if s.note.Attempt == n.Attempt && !s.note.Applying.Waits.IsZero() && s.sameHook() {
		n.Applying.Waits, n.Applying.Pauses = s.note.Applying.Waits, s.note.Applying.Pauses
	}
	s.note = n
}

// settle records that the revision is applied.
func (r *Reconciler) settle(s *state) error {
	s.delivered.Complete = true
	if s.Keeping {
		return nil
	}
	status := &s.Object.Status
	if status.LastAppliedRevision != s.resolved.Revision() || s.decided.Plan.Count(plan.Create, plan.Adopt, plan.Update, plan.Recreate) > 0 || status.LastAppliedTime == nil {
		status.LastAppliedTime = new(pipeline.StatusTime(s.Now))
	}
	status.LastAppliedRevision = s.resolved.Revision()
	if err := r.Artifacts.Keep(string(s.Object.UID), s.worthKeeping()...); err != nil {
		return err
	}
	return r.saveSnapshot(s)
}
