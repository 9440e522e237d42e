// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

func (r *Reconciler) approvals() approval.Approvals {
	return approval.Approvals{Client: r.Client, Live: r.APIReader, Labels: &r.labels, Keys: r.Keys, Snapshots: r.Snapshots, Manager: FieldManager}
}

// consider finds out what is known about the approval of a plan.
func (r *Reconciler) consider(ctx context.Context, s *state, observed plan.Input, made *plan.Plan) (err error) {
	if s.keeping {
		return nil
	}
	s.decided.consent, err = r.approvals().Consider(ctx, approval.Question{
		Object: s.object, Substance: s.rendered.Substance, Listed: s.listed.inventory, Grounds: s.grounds,
		Rejected: s.resolved.rejected != nil, Now: s.now,
	}, observed, made)
	return err
}

// approve stops a plan that waits for an approval.
func (r *Reconciler) approve(_ context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.due || s.keeping {
		return pipeline.Continue, nil
	}
	c := s.decided.consent
	waits, err := r.approvals().Waits(c, approval.Proposal{
		Object: s.object, Plan: s.decided.plan, Hooks: s.rendered.hooks, Listed: s.listed.inventory, Bare: s.bare,
	})
	if !waits || err != nil {
		return pipeline.Continue, err
	}
	s.did(v1alpha1.PlannedCondition)
	return pipeline.Stop, c.Pending(s.object, s.revision())
}

// grounds is the digest of what users of the namespace control of a plan: the spec without its intervals,
// the spec of the source, and the contents of the inputs.
func (s *state) grounds() string {
	if s.resolved.source == nil || s.resolved.source.Grounds == "" {
		return ""
	}
	spec := s.object.Spec.DeepCopy()
	spec.Suspend, spec.Source = false, nil
	spec.Interval, spec.RetryInterval = v1alpha1.Duration{}, v1alpha1.Duration{}
	return resolve.DigestOfAll("satchel.dev/grounds/v1", spec, s.resolved.source.Grounds, s.resolved.inputs.digest)
}

// before holds the status fields that begin replaces.
type before struct {
	executed  *v1alpha1.ExecutedPlan
	encoded   *v1alpha1.Inventory
	inventory inventory.Inventory
	hooks     *v1alpha1.HooksStatus
}

// consume marks the approval of the plan as consumed before anything is written. If that fails because the approval was
// withdrawn, the record is undone.
func (r *Reconciler) consume(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.due || s.keeping {
		return pipeline.Continue, nil
	}
	withdrawn, err := r.approvals().Consume(ctx, s.decided.consent, s.object, s.now)
	switch {
	case err != nil:
		return pipeline.Stop, err
	case withdrawn != nil:
		return pipeline.Stop, s.undoBegin(withdrawn)
	}
	return pipeline.Continue, nil
}

// undoBegin restores the status fields that begin and remember changed: no object was
// written.
func (s *state) undoBegin(err error) error {
	s.object.Status.Executed, s.object.Status.Inventory, s.listed.inventory = s.delivered.unbegun.executed, s.delivered.unbegun.encoded, s.delivered.unbegun.inventory
	s.object.Status.Hooks = s.delivered.unbegun.hooks
	return s.decided.consent.Withdraw(s.object, s.revision(), s.decided.plan.Summary(), err)
}

// digestMaterial digests the converted objects with their Secrets. The worker process, which does not know the key,
// digested the content.
func (r *Reconciler) digestMaterial(s *state) (err error) {
	all := slices.Concat(s.rendered.desired, plan.Rendered(s.rendered.hooks))
	s.rendered.Substance.Material, err = digest.Material(s.rendered.Substance.Content, s.resolved.inputs.digest, all, s.hashKey)
	return err
}

// unlock decrypts the key of the hashes in the status. Where the keys of the installation were rotated, it encrypts that key
// with the newest one, and renews the proofs that are valid, so that the former key can be removed. Hashes and digests
// stay as they are: nothing is applied again, no hook runs again, and no approval is lost.
func (r *Reconciler) unlock(s *state) {
	was := s.object.Status.HashKey
	var err error
	if s.hashKey, s.wrappedKey, err = r.Keys.HashKey(string(s.object.UID), was); err != nil {
		s.hashKey, s.wrappedKey = nil, was // a process without keys does not start
		return
	}
	if s.wrappedKey == was {
		return
	}
	s.object.Status.HashKey = s.wrappedKey
	if record := r.approvals().Proven(s.object); record != nil {
		r.approvals().Prove(s.object, record)
	}
	if kept := s.object.Status.LastHealthyArtifact; kept != nil && r.approvals().WasHealthy(s.object, kept) {
		kept.Proof = r.approvals().ProveHealthy(s.object, kept.Material)
	}
}

// newlyDecided tells whether a decision about a held prune was made or withdrawn since the status was written.
func (r *Reconciler) newlyDecided(ctx context.Context, s *state) (bool, error) {
	if s.note.planned.held == nil {
		return false, nil
	}
	return r.approvals().Changed(ctx, s.object, s.before, s.now)
}
