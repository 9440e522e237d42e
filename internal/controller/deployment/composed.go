// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"

	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/controller/deployment/catalogs"
	"github.com/satchel-dev/satchel/internal/controller/deployment/hooks"
	"github.com/satchel-dev/satchel/internal/controller/deployment/settle"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// The steps below need several stages, or pass what one stage found to another.

// resolveCatalog finds the bundle of spec.catalog.
func (r *Reconciler) resolveCatalog(ctx context.Context, s *state) (pipeline.Outcome, error) {
	return r.catalogs.Resolve(ctx, &catalogs.Input{Subject: &s.Subject, Listed: &s.listed, Resolved: &s.resolved})
}

// due decides whether this reconcile compares the objects with the cluster. An apply that waits is not repeated before what
// it waits for has changed.
func (r *Reconciler) due(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if err := r.resolve.Due(ctx, s.resolving()); err != nil {
		return pipeline.Stop, err
	}
	if !s.resolved.Due {
		return pipeline.Continue, nil
	}
	return r.deliver.StillHeld(ctx, s.delivering())
}

// compare finds out, from the metadata of the objects alone, whether all of them are as they were left. If so, the same input
// is not loaded, converted and planned again.
func (r *Reconciler) compare(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Routine {
		return pipeline.Continue, nil
	}
	if asked := s.note.Planned.Capabilities; asked != nil && !r.render.StillHas(ctx, s.resolved.Access.Client, *asked) {
		return pipeline.Continue, nil
	}
	same, err := r.decide.Compare(ctx, s.deciding())
	if err != nil {
		return pipeline.Stop, err
	}
	if same {
		s.resolved.Due = false
		s.note.Attempt = s.resolved.Attempt(&s.Subject)
		s.note.Checked = s.Now
	}
	return pipeline.Continue, nil
}

// repair corrects drift that watches reported. If that is not enough, everything is compared.
func (r *Reconciler) repair(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.resolved.Due {
		return pipeline.Continue, nil
	}
	whole, err := r.deliver.Repair(ctx, s.delivering())
	if err != nil {
		return pipeline.Stop, err
	}
	s.resolved.Due = whole
	return pipeline.Continue, nil
}

// convert turns the files and the inputs of the spec into objects.
func (r *Reconciler) convert(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due {
		return pipeline.Continue, nil
	}
	if err := r.resolve.ReadInputs(ctx, s.resolving()); err != nil {
		return pipeline.Stop, err
	}
	return r.render.Convert(ctx, s.rendering())
}

// operate begins the operation of the plan, once the hook of an earlier one is gone.
func (r *Reconciler) operate(ctx context.Context, s *state) (pipeline.Outcome, error) {
	in := s.delivering()
	waits, err := r.hooks.Begin(ctx, in.Operation())
	if waits != "" {
		in.Wait(waits)
	}
	if waits != "" || err != nil {
		return pipeline.Stop, err
	}
	return pipeline.Continue, nil
}

// remember stores the inventory, previous and planned together, before the first write: after a crash every written object is listed.
func (r *Reconciler) remember(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due {
		if s.resolved.AppliedAsIs(&s.Subject) {
			s.resolved.MarkInstalled(&s.Subject) // another bundle with the same content
		}
		return pipeline.Continue, nil
	}
	in := s.delivering()
	if err := r.deliver.Begin(in); err != nil {
		return pipeline.Stop, err
	}
	s.decided.Accepted = true
	settle.Announce(s.settling(nil))
	err := s.Write(ctx, r.writer)
	if err != nil {
		in.Unstored()
	}
	return pipeline.Continue, err
}

// afterHealth runs the hooks after the operation, once all objects are healthy. The revision is healthy only after these.
func (r *Reconciler) afterHealth(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.Keeping || s.settled.Health == nil || !s.settled.Health.Healthy() {
		return pipeline.Continue, nil
	}
	if done, err := r.hooks.After(ctx, s.delivering().Operation()); !done || err != nil {
		return pipeline.Stop, err
	}
	return pipeline.Continue, r.settle.Healthy(s.settling(nil))
}

// prune deletes what left the bundle, once the rest is healthy.
func (r *Reconciler) prune(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.Keeping || !s.settled.Health.Healthy() {
		return pipeline.Continue, nil
	}
	return r.deliver.Prune(ctx, s.delivering())
}

// beforeRemoval runs the hooks before the first deletion.
func (r *Reconciler) beforeRemoval(ctx context.Context, s *state) (pipeline.Outcome, error) {
	done, err := r.hooks.BeforeRemoval(ctx, s.delivering().Operation())
	return s.heldByHooks(done, err)
}

// afterRemoval runs the hooks after the last deletion, and then removes their objects.
func (r *Reconciler) afterRemoval(ctx context.Context, s *state) (pipeline.Outcome, error) {
	in := s.delivering()
	if !hooks.PendingAfterRemoval(in.Operation()) || !s.delivered.Removed.Done() {
		return pipeline.Continue, nil
	}
	done, err := r.hooks.AfterRemoval(ctx, in.Operation())
	if outcome, err := s.heldByHooks(done, err); outcome == pipeline.Stop || err != nil || s.listed.Current().Len() == 0 {
		return outcome, err
	}
	return r.deliver.Remove(ctx, in)
}

// heldByHooks stops a removal until its hooks have completed.
func (s *state) heldByHooks(done bool, err error) (pipeline.Outcome, error) {
	if done && err == nil {
		return pipeline.Continue, nil
	}
	s.delivered.Removed = &removal.Removed{Inventory: s.listed.Inventory()}
	return pipeline.Stop, err
}
