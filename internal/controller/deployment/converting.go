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
	return spec.Given{Contents: s.resolved.Inputs.Contents, Values: s.resolved.Inputs.Values}, nil
}

// conversionInput identifies everything that the conversion depends on, except the cluster.
func (s *state) conversionInput() string {
	a := s.resolved.Attempt(&s.Subject)
	return fmt.Sprintf("%s %d %q %q %q", s.Object.UID, a.Generation, a.Revision, a.Digest, a.Inputs)
}

// converted converts the bundle in a worker process, or returns an earlier result.
func (r *Reconciler) converted(ctx context.Context, s *state, given spec.Given) (*jobs.Converted, error) {
	in := render.Revision{
		Object: s.Object, About: s.conversionInput(), Revision: s.resolved.Revision(), Content: s.rendered.Unpacked, Given: given,
		Client: s.resolved.Access.Client, First: s.listed.Inventory.Len() == 0,
	}
	if err := r.renderer.Refused(in); err != nil {
		return nil, err
	}
	s.rendered.Unpacked = nil // closed at the end of the conversion
	return r.renderer.Convert(ctx, in)
}
