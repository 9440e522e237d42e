// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"

	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// certify reads the certificates that the objects mount and trust, and issues in memory
// those that are missing or due. Nothing is written before the plan is executed.
func (r *Reconciler) certify(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.Due || len(s.rendered.Wanted) == 0 {
		return pipeline.Continue, nil
	}
	made, err := certificates.Input{
		Client: s.resolved.Access.Client, Owner: s.Owner, Home: s.Home, Listed: s.listed.Inventory, HashKey: s.HashKey,
		Desired: s.rendered.Desired, Wanted: s.rendered.Wanted, Now: s.Now, Entropy: r.Entropy,
	}.Prepare(ctx)
	if err != nil {
		return pipeline.Stop, err
	}
	s.rendered.Issued = made
	return pipeline.Continue, nil
}
