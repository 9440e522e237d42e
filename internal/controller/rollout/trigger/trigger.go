// SPDX-License-Identifier: Apache-2.0

// Package trigger tells which rollouts are concerned by a change of another object.
package trigger

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Owner is the rollout that a BundleDeployment belongs to.
func Owner(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[v1alpha1.RolloutLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// Sources finds the rollouts of BundleSources.
type Sources struct {
	// Client reads rollouts from a cache.
	Client client.Reader
}

// Users are the rollouts of a BundleSource: those that follow it, and the one that pinned it.
func (s Sources) Users(ctx context.Context, object client.Object) []reconcile.Request {
	requests := Owner(ctx, object)
	var all v1alpha1.BundleRolloutList
	if err := s.Client.List(ctx, &all, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "rollouts of a source are looked at again at their interval", "source", object.GetName())
		return requests
	}
	for i := range all.Items {
		if all.Items[i].Spec.SourceRef.Name == object.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

// SourceChanged passes updates of a BundleSource that change what it publishes, or whether it is ready.
func SourceChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.BundleSource)
			after, fine := e.ObjectNew.(*v1alpha1.BundleSource)
			return !ok || !fine || before.Generation != after.Generation ||
				!equality.Semantic.DeepEqual(before.Status, after.Status)
		},
	}
}
