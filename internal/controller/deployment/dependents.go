// SPDX-License-Identifier: Apache-2.0

package deployment

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
	"github.com/satchel-dev/satchel/internal/controller/deployment/dependency"
)

// dependents lists the deployments that wait for this one. Any change of it counts,
// since a readyExpr may read every field.
func (r *Reconciler) dependents(_ context.Context, of client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, key := range r.dependencies.By(of.GetNamespace(), of.GetName()) {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}

// dependenciesChanged passes new deployments with dependencies, and changes of
// dependencies.
func dependenciesChanged() predicate.Predicate {
	dependencies := func(object client.Object) []v1alpha1.Dependency {
		if d, ok := object.(*v1alpha1.BundleDeployment); ok {
			return d.Spec.DependsOn
		}
		return nil
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return len(dependencies(e.Object)) > 0 },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(dependencies(e.ObjectOld), dependencies(e.ObjectNew))
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false }, // dependents wakes those that wait for it
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// downstream lists all direct and indirect dependents of a deployment: when its
// dependencies change, each of them may have become part of a cycle, also those that
// wait for nothing.
func (r *Reconciler) downstream(ctx context.Context, of client.Object) []reconcile.Request {
	others, err := dependency.List(ctx, r.Client, of.GetNamespace())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot wake the deployments that depend on another", "bundledeployment", client.ObjectKeyFromObject(of))
		return nil
	}
	var requests []reconcile.Request
	for _, name := range others.Downstream(of.GetName()) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: of.GetNamespace(), Name: name}})
	}
	return requests
}
