// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

// longestChain is the maximum length of a chain of controllers:
// CronJob, Job and Pod are three, with an operator's resource in front.
const longestChain = 8

// together decides from the objects of all kinds which one keeps the namespace. Controlled
// objects leave only when their controller goes: otherwise a made-up controller reference
// could leave a namespace undecided for ever.
func (d deleter) together(ctx context.Context, namespace string, inhabitants []inhabitant) inhabitant {
	all := inhabitant{}
	for _, found := range inhabitants {
		if found.err != nil || found.stays != "" {
			return found
		}
		all.leaving = append(all.leaving, found.leaving...)
	}
	c := controllers{deleter: d, namespace: namespace, listed: map[types.UID]leaver{}, gone: map[types.UID]bool{}}
	for _, found := range all.leaving {
		c.listed[found.uid] = found
	}
	for _, found := range all.leaving {
		leaves, err := c.leaves(ctx, found)
		if err != nil {
			return inhabitant{err: err}
		}
		if !leaves {
			return inhabitant{stays: fmt.Sprintf("%s lives in it, controlled by %s %s", found.name, found.controller.Kind, found.controller.Name)}
		}
	}
	return all
}

// controllers looks up the controllers of objects, each once.
type controllers struct {
	deleter
	namespace string
	listed    map[types.UID]leaver
	gone      map[types.UID]bool
}

// leaves follows the chain of controllers up to one that terminates or is gone: the garbage
// collector deletes its dependents. A circle never ends, so it stays.
func (c controllers) leaves(ctx context.Context, object leaver) (bool, error) {
	for range longestChain {
		controller := object.controller
		if controller == nil {
			return true, nil
		}
		above, listed := c.listed[controller.UID]
		if !listed {
			return c.goes(ctx, controller)
		}
		object = above
	}
	return false, nil
}

// goes tells whether a controller that is not listed in the namespace is gone, or
// terminates. One that cannot be looked up counts as staying, and so does one of a kind
// that is not served: the garbage collector never collects its dependents.
func (c controllers) goes(ctx context.Context, controller *metav1.OwnerReference) (bool, error) {
	if gone, known := c.gone[controller.UID]; known {
		return gone, nil
	}
	gone, err := c.lookUp(ctx, controller)
	if err == nil {
		c.gone[controller.UID] = gone
	}
	return gone, err
}

func (c controllers) lookUp(ctx context.Context, controller *metav1.OwnerReference) (bool, error) {
	kind := schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind)
	served, err := c.client.Kinds().Find(ctx, kind)
	if discovery.IsNoKind(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ref := tenant.Ref{Resource: served.Resource, Name: controller.Name}
	if served.Namespaced {
		ref.Namespace = c.namespace
	}
	live, err := c.client.Metadata(ctx, ref)
	var nowhere *tenant.RefError
	switch {
	case objecterror.NotServed(err):
		return false, nil
	case apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err), apierrors.IsBadRequest(err), errors.As(err, &nowhere):
		return false, nil
	case err != nil:
		return false, err
	}
	return live.UID != controller.UID || live.DeletionTimestamp != nil, nil
}
