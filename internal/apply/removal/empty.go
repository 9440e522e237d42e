// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

// ignoredKinds are kinds that do not keep a namespace: every namespace has them, they
// follow other objects, or they hold nothing of value.
var ignoredKinds = map[string]bool{
	"Endpoints": true, "Event": true, "Event.events.k8s.io": true,
	"EndpointSlice.discovery.k8s.io": true, "Lease.coordination.k8s.io": true,
}

// defaultObjects are the objects that Kubernetes creates in every namespace.
var defaultObjects = map[string]bool{"ServiceAccount/default": true, "ConfigMap/kube-root-ca.crt": true, "ConfigMap/openshift-service-ca.crt": true}

// enough is how many objects of a kind are read: a single foreign one
// keeps the namespace.
const enough = 20

// deleteEmpty deletes a namespace when nothing else lives in it. It waits for objects that
// are terminating; objects of other owners, and kinds that the ServiceAccount may not list, keep
// the namespace.
func (d deleter) deleteEmpty(ctx context.Context, deletion plan.Deletion) end {
	kinds, err := d.client.Kinds().Namespaced(ctx)
	if discovery.IsUnsettled(err) {
		return end{waiting: "waits to be looked through: " + err.Error()}
	}
	if err != nil {
		return end{denied: &objecterror.Error{ID: deletion.ID, Message: objecterror.OneLine(err.Error())}}
	}
	inhabitants := parallel.Each(ctx, d.limit, kinds, func(ctx context.Context, kind discovery.Listed) inhabitant {
		return d.inhabitant(ctx, kind, deletion.Name)
	})
	if ctx.Err() != nil {
		return end{}
	}
	result := d.together(ctx, deletion.Name, inhabitants)
	switch {
	case ctx.Err() != nil:
		return end{}
	case result.err != nil:
		return end{denied: &objecterror.Error{ID: deletion.ID, Message: objecterror.OneLine(result.err.Error())}}
	case result.stays != "":
		kept := d.release(ctx, deletion)
		if kept.note != "" {
			kept.note += ": " + result.stays
		}
		return kept
	case len(result.leaving) > 0:
		return end{waiting: "waits for " + result.leaving[0].name + " to go"}
	}
	return d.delete(ctx, deletion)
}

// inhabitant describes the objects of one kind, or of all kinds, in a namespace.
type inhabitant struct {
	stays   string
	leaving []leaver
	// unserved: the API server has no such resource.
	unserved bool
	err      error
}

// leaver is an object that terminates, or that is deleted with its controller if that
// one goes.
type leaver struct {
	name       string
	uid        types.UID
	controller *metav1.OwnerReference
}

func (d deleter) inhabitant(ctx context.Context, kind discovery.Listed, namespace string) inhabitant {
	name := kind.GroupKind().String()
	if ignoredKinds[name] {
		return inhabitant{}
	}
	list, err := d.client.ListMetadata(ctx, tenant.Ref{Resource: kind.Served.Resource, Namespace: namespace}, metav1.ListOptions{Limit: enough})
	switch {
	case apierrors.IsForbidden(err):
		return inhabitant{stays: fmt.Sprintf("the ServiceAccount may not list %s to see whether it is empty", kind.Served.Resource.GroupResource())}
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return inhabitant{}
	case err != nil:
		return inhabitant{err: err}
	}
	return whoStays(kind.Kind, name, list.Items)
}

// whoStays tells the objects that keep a namespace from those that may disappear:
// terminating ones, and those that have a controller.
func whoStays(kind, name string, items []metav1.PartialObjectMetadata) inhabitant {
	result := inhabitant{}
	for i := range items {
		item := &items[i]
		found := leaver{name: name + " " + item.Name, uid: item.UID}
		switch {
		case defaultObjects[kind+"/"+item.Name], item.UID == "": // the latter is computed, not stored
			continue
		case item.DeletionTimestamp == nil:
			if found.controller = metav1.GetControllerOf(item); found.controller == nil {
				return inhabitant{stays: found.name + " lives in it"}
			}
		}
		result.leaving = append(result.leaving, found)
	}
	return result
}
