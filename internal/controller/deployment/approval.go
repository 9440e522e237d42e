// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
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
	if s.Keeping {
		return nil
	}
	s.decided.Consent, err = r.approvals().Consider(ctx, approval.Question{
		Object: s.Object, Substance: s.rendered.Substance, Listed: s.listed.Inventory, Grounds: s.grounds,
		Rejected: s.resolved.Rejected != nil, Now: s.Now,
	}, observed, made)
	return err
}

// approve stops a plan that waits for an approval.
func (r *Reconciler) approve(_ context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due || s.Keeping {
		return pipeline.Continue, nil
	}
	c := s.decided.Consent
	waits, err := r.approvals().Waits(c, approval.Proposal{
		Object: s.Object, Plan: s.decided.Plan, Hooks: s.rendered.Hooks, Listed: s.listed.Inventory, Bare: func(objects []plan.Object) ([]*unstructured.Unstructured, error) {
			return s.rendered.Bare(&s.Subject, objects)
		},
	})
	if !waits || err != nil {
		return pipeline.Continue, err
	}
	s.decided.Accepted = true
	return pipeline.Stop, c.Pending(s.Object, s.resolved.Revision())
}

// grounds is the digest of what users of the namespace control of a plan: the spec without its intervals,
// the spec of the source, and the contents of the inputs.
func (s *state) grounds() string {
	if s.resolved.Source == nil || s.resolved.Source.Grounds == "" {
		return ""
	}
	spec := s.Object.Spec.DeepCopy()
	spec.Suspend, spec.Source = false, nil
	spec.Interval, spec.RetryInterval = v1alpha1.Duration{}, v1alpha1.Duration{}
	return resolve.DigestOfAll("satchel.dev/grounds/v1", spec, s.resolved.Source.Grounds, s.resolved.Inputs.Digest)
}

// consume marks the approval of the plan as consumed before anything is written. If that fails because the approval was
// withdrawn, the record is undone.
func (r *Reconciler) consume(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due || s.Keeping {
		return pipeline.Continue, nil
	}
	withdrawn, err := r.approvals().Consume(ctx, s.decided.Consent, s.Object, s.Now)
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
	s.Object.Status.Executed, s.Object.Status.Inventory, s.listed.Inventory = s.delivered.Unbegun.Executed, s.delivered.Unbegun.Encoded, s.delivered.Unbegun.Inventory
	s.Object.Status.Hooks = s.delivered.Unbegun.Hooks
	return s.decided.Consent.Withdraw(s.Object, s.resolved.Revision(), s.decided.Plan.Summary(), err)
}

// digestMaterial digests the converted objects with their Secrets. The worker process, which does not know the key,
// digested the content.
func (r *Reconciler) digestMaterial(s *state) (err error) {
	all := slices.Concat(s.rendered.Desired, plan.Rendered(s.rendered.Hooks))
	s.rendered.Substance.Material, err = digest.Material(s.rendered.Substance.Content, s.resolved.Inputs.Digest, all, s.HashKey)
	return err
}

// unlock decrypts the key of the hashes in the status. Where the keys of the installation were rotated, it encrypts that key
// with the newest one, and renews the proofs that are valid, so that the former key can be removed. Hashes and digests
// stay as they are: nothing is applied again, no hook runs again, and no approval is lost.
func (r *Reconciler) unlock(s *state) {
	was := s.Object.Status.HashKey
	var err error
	if s.HashKey, s.WrappedKey, err = r.Keys.HashKey(string(s.Object.UID), was); err != nil {
		s.HashKey, s.WrappedKey = nil, was // a process without keys does not start
		return
	}
	if s.WrappedKey == was {
		return
	}
	s.Object.Status.HashKey = s.WrappedKey
	if record := r.approvals().Proven(s.Object); record != nil {
		r.approvals().Prove(s.Object, record)
	}
	if kept := s.Object.Status.LastHealthyArtifact; kept != nil && r.approvals().WasHealthy(s.Object, kept) {
		kept.Proof = r.approvals().ProveHealthy(s.Object, kept.Material)
	}
}

// newlyDecided tells whether a decision about a held prune was made or withdrawn since the status was written.
func (r *Reconciler) newlyDecided(ctx context.Context, s *state) (bool, error) {
	if s.note.Planned.Held == nil {
		return false, nil
	}
	return r.approvals().Changed(ctx, s.Object, s.Before, s.Now)
}
