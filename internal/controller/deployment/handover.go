// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/deployment/handover"
	"github.com/satchel-dev/satchel/internal/controller/deployment/render"
)

// handOver gives away what a refused plan leaves to other deployments, and wakes those of the namespace that wait to know what
// this one wants.
func (r *Reconciler) handOver(ctx context.Context, s *state, err error) error {
	if failed := r.deliver.GiveAway(ctx, s.delivering()); failed != nil {
		err = errors.Join(err, failed)
	}
	if errors.Is(err, render.ErrPending) {
		return err
	}
	state := handover.State{UID: s.Object.UID, Generation: s.Object.Generation, Revision: s.resolved.Revision()}
	for _, waiting := range r.handover.Saw(s.Key(), state) {
		r.waker.Wake(waiting, 0)
	}
	return err
}

// stillOurs leaves out of the objects that were applied last those that were handed over to another deployment.
func (r *Reconciler) stillOurs(s *state, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	cluster := handover.ClusterOf(s.Object, s.listed.Current().Target())
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		id := inventory.IDOf(object)
		_, wanted := r.handover.Wanted(s.Key(), cluster, id)
		return wanted && !s.listed.Inventory().Has(id)
	})
}
