// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"

	"github.com/satchel-dev/satchel/internal/controller/deployment/render"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// given are the inputs of the conversion beside the bundle and the spec.
func (r *Reconciler) given(ctx context.Context, s *state) (spec.Given, error) {
	if err := r.readInputs(ctx, s); err != nil {
		return spec.Given{}, err
	}
	return spec.Given{Contents: s.resolved.inputs.contents, Values: s.resolved.inputs.values}, nil
}

// conversionInput identifies everything that the conversion depends on, except the cluster.
func (s *state) conversionInput() string {
	a := s.attempt()
	return fmt.Sprintf("%s %d %q %q %q", s.object.UID, a.generation, a.revision, a.digest, a.inputs)
}

// converted converts the bundle in a worker process, or returns an earlier result.
func (r *Reconciler) converted(ctx context.Context, s *state, given spec.Given) (*jobs.Converted, error) {
	in := render.Revision{
		Object: s.object, About: s.conversionInput(), Revision: s.revision(), Content: s.rendered.content, Given: given,
		Client: s.resolved.access.Client, First: s.listed.inventory.Len() == 0,
	}
	if err := r.renderer.Refused(in); err != nil {
		return nil, err
	}
	s.rendered.content = nil // closed at the end of the conversion
	return r.renderer.Convert(ctx, in)
}
