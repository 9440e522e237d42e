// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/upstream/failure"
	"github.com/satchel-dev/satchel/internal/controller/upstream/figures"
	"github.com/satchel-dev/satchel/internal/controller/upstream/scratch"
	"github.com/satchel-dev/satchel/internal/controller/upstream/trust"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
	"github.com/satchel-dev/satchel/internal/pattern"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// steps is the whole reconcile of a catalog.
func (r *Reconciler) steps() []pipeline.Step[*state] {
	return []pipeline.Step[*state]{
		{Name: "policies", Run: r.policies},
		{Name: "check", Run: r.check},
		{Name: "accept", Run: r.accept},
		{Name: "signatures", Run: r.requireSignatures},
		{Name: "denial", Run: r.denial},
		{Name: "trust", Run: r.retrust},
		{Name: "resolve", Run: r.resolve},
		{Name: "fetch", Run: r.fetch},
	}
}

// check finds out whether the contents are still in storage.
func (r *Reconciler) check(_ context.Context, s *state) (pipeline.Outcome, error) {
	contents, err := r.Store.Contents(s.key)
	_, stored := r.Store.Record(s.key)
	switch {
	case err == nil:
		s.served = contents
	case fetch.ReasonOf(err) == "":
		return pipeline.Stop, err // the volume is the problem, not the contents
	case stored || s.object.Status.Content != nil:
		s.lost = err
	}
	return pipeline.Continue, nil
}

// accept stops a catalog with an invalid spec.
func (r *Reconciler) accept(_ context.Context, s *state) (pipeline.Outcome, error) {
	err := effective.CatalogProblem(&s.object.Spec)
	if err != nil {
		return pipeline.Stop, failure.InvalidSpec(err)
	}
	return pipeline.Continue, nil
}

// requireSignatures stops and withdraws a catalog in a namespace that requires signatures if it does not require one. An
// unreadable label stops it as well.
func (r *Reconciler) requireSignatures(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if effective.DemandsSignature(s.spec) {
		return pipeline.Continue, nil
	}
	required, err := r.labels.Required(ctx, r.APIReader, s.object.Namespace)
	if err != nil {
		return pipeline.Stop, err
	}
	if !required.Signatures {
		return pipeline.Continue, nil
	}
	s.unsigned = signatureRequired(s.object.Namespace)
	return pipeline.Stop, errors.Join(s.unsigned, r.withdraw(s))
}

// withdraw ends serving a catalog.
func (r *Reconciler) withdraw(s *state) error {
	s.served = nil
	return r.Store.Remove(s.key)
}

// retrust checks whether the served contents are still accepted by the current trust settings. If these changed, the kept
// signature is verified again. Contents that no key or identity accepts are withdrawn.
func (r *Reconciler) retrust(ctx context.Context, s *state) (pipeline.Outcome, error) {
	current, err := trust.Of(s.source(), s.secrets, s.adapters).Current(ctx)
	if err != nil {
		return pipeline.Stop, err
	}
	if s.served == nil || current == "" || s.sameTrust(current) {
		return pipeline.Continue, nil
	}
	by, err := trust.VerifyKept(ctx, s.adapters, s.source(), s.recorded(), func() ([]byte, error) { return s.served.Record.Signature, nil })
	s.secrets.Patterns = pattern.NewBudget() // the fetch has its own budget
	switch {
	case err == nil:
		s.accepted = &acceptance{current, by}
		return pipeline.Continue, nil
	case errors.Is(err, verify.ErrNoTrust):
		s.distrusted = err
		if err := r.withdraw(s); err != nil {
			return pipeline.Stop, err
		}
	default:
		s.untrusted = err
	}
	return pipeline.Continue, r.tellDistrust(ctx, s)
}

// resolve asks the upstream for the digest of its reference.
func (r *Reconciler) resolve(ctx context.Context, s *state) (pipeline.Outcome, error) {
	previous, known := s.previous()
	fetcher, err := s.adapters.Fetcher(ctx, s.source(), previous)
	if err != nil {
		return pipeline.Stop, err
	}
	s.part, s.trust = fetch.Part{Fetcher: fetcher}, trust.Of(s.source(), s.secrets, s.adapters).Digest()
	if s.part.Resolved, err = fetcher.Resolve(ctx); err != nil {
		return pipeline.Stop, err
	}
	s.moved = s.served == nil || !known || !s.sameTrust(s.trust) || !s.part.Resolved.Same(previous)
	r.Measures.Resolved(figuresKind, s.moved)
	return pipeline.Continue, nil
}

// figuresKind is the label of catalogs in the metrics about sources.
const figuresKind = "catalog"

// fetch downloads the resolved version into a temporary folder, and has it indexed and stored. A version that was refused is
// not downloaded again.
func (r *Reconciler) fetch(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.moved {
		return pipeline.Continue, nil
	}
	if err := r.refused.known(s); err != nil {
		return pipeline.Stop, err
	}
	err := r.renew(ctx, s)
	r.refused.note(s, err)
	if err != nil {
		return pipeline.Stop, err
	}
	return pipeline.Continue, nil
}

// renew fetches, indexes and stores the resolved version.
func (r *Reconciler) renew(ctx context.Context, s *state) error {
	if err := r.announce(ctx, s); err != nil {
		return err
	}
	tree, remove, err := scratch.NewTree(r.Scratch, "catalog-*", r.Upstreams.Limits)
	if err != nil {
		return err
	}
	defer remove()
	resolved, err := s.part.Fetcher.Fetch(ctx, s.part.Resolved, tree)
	if err != nil {
		return scratch.UnpackingError(errors.Join(err, r.distrust(s, err)))
	}
	began := time.Now()
	draft, err := r.index(ctx, s, tree)
	if draft != nil {
		defer draft.Discard()
	}
	if err == nil {
		err = r.publish(s, draft, resolved)
	}
	r.Measures.Observe(figures.Storing, figuresKind, time.Since(began), err)
	return err
}

// distrust withdraws the served contents if new content is not accepted by changed trust settings.
func (r *Reconciler) distrust(s *state, err error) error {
	if fetch.ReasonOf(err) != fetch.Unverified || s.sameTrust(s.trust) || s.served == nil {
		return nil
	}
	s.distrusted = err
	return r.withdraw(s)
}

// keptSignature encodes the signature by which a version was accepted; nil for none.
func keptSignature(resolved fetch.Resolved) ([]byte, error) {
	if resolved.Signature == "" {
		return nil, nil
	}
	return json.Marshal([]trust.KeptSignature{{Digest: resolved.Digest, Signature: resolved.Signature}})
}
