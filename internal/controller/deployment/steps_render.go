// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/step"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
)

// decide finds out whether the objects are compared with the cluster this time.
func (r *Reconciler) decide(ctx context.Context, s *state) (step.Outcome, error) {
	news, err := r.newlyDecided(ctx, s)
	if err != nil {
		return step.Stop, err
	}
	s.due = s.full() || r.kinds.came(client.ObjectKeyFromObject(s.object)) || news
	if s.due {
		return r.stillHeld(ctx, s)
	}
	if s.overInterval() {
		s.note.checked = s.now // health is all that there is to look at
	}
	return step.Continue, nil
}

// load fetches the artifact, from the cache where it is there already.
func (r *Reconciler) load(ctx context.Context, s *state) (step.Outcome, error) {
	if !s.due {
		return step.Continue, nil
	}
	s.object.Status.LastAttemptedRevision = s.artifact.Revision
	ctx, cancel := context.WithTimeout(ctx, longestLoad)
	defer cancel()
	content, err := r.Artifacts.Load(ctx, s.source.owner, *s.artifact)
	if err != nil {
		return step.Stop, failure{reason: v1alpha1.ReasonArtifactFailed, err: err}
	}
	s.content = content
	return step.Continue, nil
}

// longestLoad bounds loading and unpacking one artifact, so that an artifact
// server that stalls holds no worker for long.
const longestLoad = 2 * time.Minute

// convert turns the files into objects.
func (r *Reconciler) convert(ctx context.Context, s *state) (step.Outcome, error) {
	if !s.due {
		return step.Continue, nil
	}
	given, err := r.given(ctx, s)
	if err != nil {
		return step.Stop, err
	}
	end, err := r.rendering.begin(ctx)
	if err != nil {
		return step.Stop, err
	}
	defer end()
	result, err := convert.Convert(s.content.FS(), spec.Conversion(s.object, given, r.Manifests))
	if err != nil {
		var refused *convert.Error // the same content is refused again, but a volume may fail to be read only once
		stalled := errors.As(err, &refused) && refused.Permanent()
		return step.Stop, failure{reason: v1alpha1.ReasonConversionFailed, stalled: stalled, err: err}
	}
	s.closeContent()
	if s.desired, err = result.Objects, s.hold(ctx, r.rendering, result.Objects); err != nil {
		return step.Stop, err
	}
	s.hooks = spec.Hooks(result)
	if err := r.digestContent(s); err != nil {
		return step.Stop, err
	}
	s.ranks = spec.Ranks(result)
	s.wanted, s.requires, s.contains = result.Certificates, result.Requirements, result.Package
	s.warnings = slices.Clone(result.Warnings)
	s.object.Status.Format = v1alpha1.Format(result.Format)
	s.did(v1alpha1.ConvertedCondition)
	return step.Continue, nil
}
