// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec"
)

// decide determines whether this reconcile compares the objects with the cluster.
func (r *Reconciler) decide(ctx context.Context, s *state) (pipeline.Outcome, error) {
	news, err := r.newlyDecided(ctx, s)
	if err != nil {
		return pipeline.Stop, err
	}
	s.resolved.due = s.full() || r.kinds.Came(client.ObjectKeyFromObject(s.object)) || news
	if s.resolved.due {
		return r.stillHeld(ctx, s)
	}
	if s.overInterval() {
		s.note.checked = s.now // only health is checked
	}
	return pipeline.Continue, nil
}

// load fetches the artifact, from the cache if it is there.
func (r *Reconciler) load(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.due {
		return pipeline.Continue, nil
	}
	s.object.Status.LastAttemptedRevision = s.resolved.artifact.Revision
	ctx, cancel := context.WithTimeout(ctx, longestLoad)
	defer cancel()
	content, err := r.Artifacts.Load(ctx, s.resolved.source.Owner, *s.resolved.artifact)
	if err != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonArtifactFailed, Err: err}
	}
	s.rendered.content = content
	return pipeline.Continue, nil
}

// longestLoad bounds loading and unpacking one artifact, so that a stalled artifact
// server does not block a worker for long.
const longestLoad = 2 * time.Minute

// convert turns the files into objects, in a worker process.
func (r *Reconciler) convert(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.due {
		return pipeline.Continue, nil
	}
	given, err := r.given(ctx, s)
	if err != nil {
		return pipeline.Stop, err
	}
	converted, err := r.converted(ctx, s, given)
	if err != nil {
		return pipeline.Stop, err
	}
	if s.rendered.release, err = r.renderer.Hold(s.object, converted.Values); err != nil {
		return pipeline.Stop, err
	}
	result, err := converted.Result()
	if err != nil {
		return pipeline.Stop, err
	}
	s.rendered.desired, s.rendered.hooks = result.Objects, spec.Hooks(result)
	s.rendered.Substance.Content = converted.Content
	if err := r.digestMaterial(s); err != nil {
		return pipeline.Stop, err
	}
	if asked := converted.Capabilities; asked != nil {
		s.rendered.capabilities = spec.Capabilities(*asked)
	}
	s.rendered.ranks = spec.Ranks(result)
	s.rendered.wanted, s.rendered.requires, s.rendered.contains = result.Certificates, result.Requirements, result.Package
	s.warnings = slices.Concat(s.warnings, converted.Warnings, result.Warnings)
	s.object.Status.Format = v1alpha1.Format(result.Format)
	s.did(v1alpha1.ConvertedCondition)
	return pipeline.Continue, nil
}
