// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// deleteUnused deletes a CRD when no resource of its kind is left anywhere. Those of
// the bundle are deleted before. It waits for resources that are terminating; resources of
// other owners, and ones that the ServiceAccount may not list, keep the CRD. A resource that is
// created between the LIST and the deletion is deleted with it: the API server has no
// precondition against that.
func (d deleter) deleteUnused(ctx context.Context, deletion plan.Deletion) end {
	crd, err := d.client.Get(ctx, tenant.RefTo(deletion.ID, deletion.Resource))
	switch {
	case apierrors.IsNotFound(err):
		return end{gone: true}
	case err != nil:
		return end{denied: objecterror.Of(deletion.ID, err)}
	}
	used, err := d.users(ctx, tenant.Ref{Resource: crds.Resources(crd)})
	switch {
	case ctx.Err() != nil:
		return end{}
	case err != nil:
		return end{denied: objecterror.Of(deletion.ID, fmt.Errorf("looking for resources of its kind: %w", err))}
	case used.unserved && crds.Established(crd):
		return end{waiting: "waits until its resources are served, to see whether any is left"}
	case used.stays != "":
		kept := d.release(ctx, deletion)
		if kept.note != "" {
			kept.note += ": " + used.stays
		}
		return kept
	case len(used.leaving) > 0:
		return end{waiting: "waits for " + used.leaving[0].name + " to go"}
	}
	gone := d.delete(ctx, deletion)
	if gone.gone || gone.deleted {
		d.client.Kinds().Forget()
	}
	return gone
}

// users are the resources of a kind, of all namespaces. One that stays is enough.
func (d deleter) users(ctx context.Context, resources tenant.Ref) (inhabitant, error) {
	found := inhabitant{}
	if resources.Resource.Version == "" {
		return inhabitant{stays: "none of its versions is served, so its resources cannot be listed"}, nil
	}
	options := metav1.ListOptions{Limit: tenant.PageSize}
	for {
		page, err := d.client.ListMetadata(ctx, resources, options)
		switch {
		case apierrors.IsForbidden(err):
			return inhabitant{stays: fmt.Sprintf("the ServiceAccount may not list %s in the cluster to see whether any is left", resources.Resource.GroupResource())}, nil
		case objecterror.NotServed(err):
			found.unserved = true
			return found, nil
		case objecterror.ByConversionWebhook(err):
			return inhabitant{stays: "its resources cannot be listed (" + objecterror.OneLine(err.Error()) + ")"}, nil
		case err != nil:
			return inhabitant{}, err
		}
		for i := range page.Items {
			item := &page.Items[i]
			name := fmt.Sprintf("%s %s", resources.Resource.GroupResource(), nameOf(item))
			if item.DeletionTimestamp == nil {
				return inhabitant{stays: name + " is left"}, nil
			}
			found.leaving = append(found.leaving, leaver{name: name})
		}
		if page.Continue == "" {
			return found, nil
		}
		options.Continue = page.Continue
	}
}

func nameOf(object *metav1.PartialObjectMetadata) string {
	if object.Namespace == "" {
		return object.Name
	}
	return object.Namespace + "/" + object.Name
}
