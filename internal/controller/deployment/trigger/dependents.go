// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"

	"github.com/fluxcd/pkg/runtime/conditions"
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

// provides is the package that a deployment has installed; nil when there is none.
// During an upgrade it is the last version that was healthy.
func provides(d *v1alpha1.BundleDeployment) *v1alpha1.PackageStatus {
	if !d.DeletionTimestamp.IsZero() {
		return nil
	}
	return d.Status.Healthy.Package
}

// PackageChanged passes deployments that start to provide a package, or another
// version.
func PackageChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.BundleDeployment)
			after, fine := e.ObjectNew.(*v1alpha1.BundleDeployment)
			return ok && fine && provides(after) != nil && !equality.Semantic.DeepEqual(provides(before), provides(after))
		},
	}
}

// WaitingFor lists the deployments that wait for a package that another one has just
// installed: they require it, and their plan is refused.
func (r Mapper) WaitingFor(ctx context.Context, provider client.Object) []reconcile.Request {
	other, ok := provider.(*v1alpha1.BundleDeployment)
	if !ok || provides(other) == nil {
		return nil
	}
	var requests []reconcile.Request
	for _, key := range r.Packages.By(other.Namespace, other.Status.Healthy.Package.Name) {
		var d v1alpha1.BundleDeployment
		if err := r.Client.Get(ctx, key, &d); err == nil && conditions.GetReason(&d, v1alpha1.PlannedCondition) == v1alpha1.ReasonPlanRefused {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// RequirementsChanged passes deployments that require something else than before, or nothing more.
func RequirementsChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.BundleDeployment)
			after, fine := e.ObjectNew.(*v1alpha1.BundleDeployment)
			return ok && fine && (!equality.Semantic.DeepEqual(before.Status.Healthy.Requires, after.Status.Healthy.Requires) ||
				!equality.Semantic.DeepEqual(before.Spec.RegistryV1, after.Spec.RegistryV1) ||
				before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero())
		},
	}
}

// BlockedBy lists the deployments with a plan that is refused because another one would lose what it requires.
func (r Mapper) BlockedBy(_ context.Context, by client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, key := range r.Blocked.By(by.GetNamespace(), by.GetName()) {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}

// Dependents lists the deployments that wait for this one. Any change of it counts,
// since a readyExpr may read every field.
func (r Mapper) Dependents(_ context.Context, of client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, key := range r.Dependencies.By(of.GetNamespace(), of.GetName()) {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}

// DependenciesChanged passes new deployments with dependencies, and changes of
// dependencies.
func DependenciesChanged() predicate.Predicate {
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

// Downstream lists all direct and indirect dependents of a deployment: when its
// dependencies change, each of them may have become part of a cycle, also those that
// wait for nothing.
func (r Mapper) Downstream(ctx context.Context, of client.Object) []reconcile.Request {
	names, err := dependency.Downstream(ctx, r.Client, of.GetNamespace(), of.GetName())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot wake the deployments that depend on another", "bundledeployment", client.ObjectKeyFromObject(of))
		return nil
	}
	var requests []reconcile.Request
	for _, name := range names {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: of.GetNamespace(), Name: name}})
	}
	return requests
}
