// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// certify reads the certificates that the objects mount and trust, and issues in memory
// those that are missing or due. Nothing is written before the plan is executed.
func (r *Reconciler) certify(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if !s.resolved.due || len(s.rendered.wanted) == 0 {
		return pipeline.Continue, nil
	}
	made, err := certificates.Input{
		Client: s.resolved.access.Client, Owner: s.owner, Home: s.home, Listed: s.listed.inventory, HashKey: s.hashKey,
		Desired: s.rendered.desired, Wanted: s.rendered.wanted, Now: s.now, Entropy: r.Entropy,
	}.Prepare(ctx)
	if err != nil {
		return pipeline.Stop, err
	}
	s.rendered.issued = made
	return pipeline.Continue, nil
}

// authorityID is the Secret of the certificates' authority.
func (s *state) authorityID() inventory.ID {
	return certificates.AuthorityOf(s.owner, s.home)
}

// trusts tells whether an object trusts one of the wanted certificates.
func (s *state) trusts(object *unstructured.Unstructured) bool {
	return certificate.Trusts(object, certificates.Requests(s.rendered.wanted))
}

// bare returns the objects of the plan as the bundle has them, without what certify added.
func (s *state) bare(objects []plan.Object) ([]*unstructured.Unstructured, error) {
	return s.rendered.issued.Bare(objects, s.owner, s.rendered.desired, s.rendered.wanted)
}
