// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/convert"
)

// packageStatus is the package of a bundle for its status.
func packageStatus(p convert.Package) *v1alpha1.PackageStatus {
	if p.Name == "" {
		return nil
	}
	return &v1alpha1.PackageStatus{Name: p.Name, Version: p.Version}
}

// packages are those that other deployments of the same namespace have installed.
// Those of other namespaces are nobody's business here.
func (r *Reconciler) packages(ctx context.Context, of *v1alpha1.BundleDeployment) ([]plan.Package, error) {
	var deployments v1alpha1.BundleDeploymentList
	if err := r.Client.List(ctx, &deployments, client.InNamespace(of.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the deployments of namespace %s: %w", of.Namespace, err)
	}
	var installed []plan.Package
	for i := range deployments.Items {
		if other := &deployments.Items[i]; other.Name != of.Name && provides(other) != nil {
			installed = append(installed, plan.Package{Name: other.Status.Package.Name, Version: other.Status.Package.Version})
		}
	}
	return installed, nil
}

// provides is the package that a deployment has installed and that was healthy
// since; nil when there is none. A package whose Pods restart stays installed.
func provides(d *v1alpha1.BundleDeployment) *v1alpha1.PackageStatus {
	if !d.DeletionTimestamp.IsZero() || d.Status.LastHealthyRevision != d.Status.LastAppliedRevision {
		return nil
	}
	return d.Status.Package
}

// packageMoved lets through that a deployment begins to provide a package, or
// another version.
func packageMoved() predicate.Predicate {
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

// waitingFor lists the deployments that may wait for a package of the same
// namespace: those whose plan is refused.
func (r *Reconciler) waitingFor(ctx context.Context, provider client.Object) []reconcile.Request {
	var deployments v1alpha1.BundleDeploymentList
	if err := r.Client.List(ctx, &deployments, client.InNamespace(provider.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot wake what waits for a package", "provider", client.ObjectKeyFromObject(provider))
		return nil
	}
	var requests []reconcile.Request
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if d.Name != provider.GetName() && conditions.GetReason(d, v1alpha1.PlannedCondition) == v1alpha1.ReasonPlanRefused {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(d)})
		}
	}
	return requests
}
