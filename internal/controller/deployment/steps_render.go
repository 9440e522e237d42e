// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"
	"time"

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
	s.resolved.Due = s.full() || r.kinds.Came(s.Key()) || news
	if s.resolved.Due {
		return r.stillHeld(ctx, s)
	}
	if s.overInterval() {
		s.note.Checked = s.Now // only health is checked
	}
	return pipeline.Continue, nil
}

// load fetches the artifact, from the cache if it is there.
func (r *Reconciler) load(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due {
		return pipeline.Continue, nil
	}
	s.Object.Status.LastAttemptedRevision = s.resolved.Artifact.Revision
	ctx, cancel := context.WithTimeout(ctx, longestLoad)
	defer cancel()
	content, err := r.Artifacts.Load(ctx, s.resolved.Source.Owner, *s.resolved.Artifact)
	if err != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonArtifactFailed, Err: err}
	}
	s.rendered.Unpacked = content
	return pipeline.Continue, nil
}

// longestLoad bounds loading and unpacking one artifact, so that a stalled artifact
// server does not block a worker for long.
const longestLoad = 2 * time.Minute

// convert turns the files into objects, in a worker process.
func (r *Reconciler) convert(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due {
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
	if s.rendered.Release, err = r.renderer.Hold(s.Object, converted.Values); err != nil {
		return pipeline.Stop, err
	}
	result, err := converted.Result()
	if err != nil {
		return pipeline.Stop, err
	}
	s.rendered.Desired, s.rendered.Hooks = result.Objects, spec.Hooks(result)
	s.rendered.Substance.Content = converted.Content
	if err := r.digestMaterial(s); err != nil {
		return pipeline.Stop, err
	}
	if asked := converted.Capabilities; asked != nil {
		s.rendered.Capabilities = spec.Capabilities(*asked)
	}
	s.rendered.Ranks = spec.Ranks(result)
	s.rendered.Wanted, s.rendered.Requires, s.rendered.Contains = result.Certificates, result.Requirements, result.Package
	s.rendered.Warnings = slices.Concat(converted.Warnings, result.Warnings)
	s.Object.Status.Format = v1alpha1.Format(result.Format)
	s.rendered.Converted = true
	return pipeline.Continue, nil
}
