// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/announce"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// steps is the whole reconcile of a rollout that is not being deleted.
func (r *Reconciler) steps() []pipeline.Step[*state] {
	return []pipeline.Step[*state]{
		{Name: "accept", Run: r.accept},
		{Name: "protect", Run: r.protect},
		{Name: "source", Run: r.findSource},
		{Name: "pin", Run: r.pinRevision},
		{Name: "clusters", Run: r.listClusters},
		{Name: "observe", Run: r.observe},
		{Name: "approvals", Run: r.readApprovals},
		{Name: "takeover", Run: r.takeOver},
		{Name: "heal", Run: r.heal},
		{Name: "finish", Run: r.finishStarts},
		{Name: "check", Run: r.checkRevision},
		{Name: "decide", Run: r.decide},
		{Name: "record", Run: r.record},
		{Name: "consume", Run: r.consumeApprovals},
		{Name: "start", Run: r.start},
		{Name: "look", Run: r.look},
		{Name: "remove", Run: r.removeLeavers},
		{Name: "collect", Run: r.collect},
	}
}

// removalSteps is the reconcile of a rollout that is being deleted.
func (r *Reconciler) removalSteps() []pipeline.Step[*state] {
	return []pipeline.Step[*state]{
		{Name: "remove", Run: r.remove},
	}
}

// accept stops a rollout with an invalid spec: no cluster is changed then.
func (r *Reconciler) accept(_ context.Context, s *state) (pipeline.Outcome, error) {
	spec := &s.object.Spec
	strategy, err := rollout.ReadStrategy(&spec.Strategy)
	if err := errors.Join(err, revision.CheckTemplate(spec)); err != nil {
		return pipeline.Stop, &failure{reason: v1alpha1.ReasonInvalidSpec, stalled: true, err: err}
	}
	s.strategy = strategy
	return pipeline.Continue, nil
}

// protect adds the finalizer.
func (r *Reconciler) protect(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if controllerutil.ContainsFinalizer(s.object, v1alpha1.Finalizer) {
		return pipeline.Continue, nil
	}
	base := s.object.DeepCopy()
	changed := s.object.DeepCopy()
	controllerutil.AddFinalizer(changed, v1alpha1.Finalizer)
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, changed, patch, client.FieldOwner(FieldManager)); err != nil {
		return pipeline.Stop, pipeline.MarkStale(err)
	}
	s.adopt(changed)
	return pipeline.Continue, nil
}

// adopt takes over metadata of the rollout after a write.
func (s *state) adopt(changed *v1alpha1.BundleRollout) {
	for _, object := range []*v1alpha1.BundleRollout{s.object, s.stored, s.before} {
		object.Finalizers = changed.Finalizers
		object.ResourceVersion = changed.ResourceVersion
	}
}

// write writes the status, if it changed.
func (r *Reconciler) write(ctx context.Context, s *state) error {
	if err := r.writer.Write(ctx, s.stored, s.object); err != nil {
		return err
	}
	announce.Changes(r.Events, s.stored, s.object)
	s.stored = s.object.DeepCopy()
	return nil
}
