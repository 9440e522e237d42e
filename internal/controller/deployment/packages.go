// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"maps"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
	"github.com/satchel-dev/satchel/internal/spec"
)

// packageStatus is the package of a bundle for the status.
func packageStatus(p convert.Package) *v1alpha1.PackageStatus {
	if p.Name == "" {
		return nil
	}
	return &v1alpha1.PackageStatus{Name: p.Name, Version: p.Version}
}

// packages are those that other deployments of the same namespace have installed on a
// cluster. Packages of other namespaces stay private.
func (r *Reconciler) packages(ctx context.Context, of *v1alpha1.BundleDeployment, target string) ([]plan.Package, error) {
	var deployments v1alpha1.BundleDeploymentList
	if err := r.Client.List(ctx, &deployments, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the deployments of namespace %s: %w", of.Namespace, err)
	}
	return spec.Packages(deployments.Items, of, target), nil
}

// provides is the package that a deployment has installed; nil when there is none.
// During an upgrade it is the last version that was healthy.
func provides(d *v1alpha1.BundleDeployment) *v1alpha1.PackageStatus {
	if !d.DeletionTimestamp.IsZero() {
		return nil
	}
	return d.Status.Package
}

// namesOf are the names of the required packages.
func namesOf(requirements []convert.Requirement) map[string]bool {
	names := map[string]bool{}
	for _, requirement := range requirements {
		if requirement.Kind == bundle.RequirePackage {
			names[requirement.Name] = true
		}
		maps.Copy(names, namesOf(requirement.Of))
	}
	return names
}

// packageChanged passes deployments that start to provide a package, or another
// version.
func packageChanged() predicate.Predicate {
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

// waitingFor lists the deployments that wait for a package that another one has just
// installed: they require it, and their plan is refused.
func (r *Reconciler) waitingFor(ctx context.Context, provider client.Object) []reconcile.Request {
	other, ok := provider.(*v1alpha1.BundleDeployment)
	if !ok || provides(other) == nil {
		return nil
	}
	var requests []reconcile.Request
	for _, key := range r.awaited.By(other.Namespace, other.Status.Package.Name) {
		var d v1alpha1.BundleDeployment
		if err := r.Client.Get(ctx, key, &d); err == nil && conditions.GetReason(&d, v1alpha1.PlannedCondition) == v1alpha1.ReasonPlanRefused {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}
