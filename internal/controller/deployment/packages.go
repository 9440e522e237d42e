// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
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
func (r *Reconciler) packages(ctx context.Context, of *v1alpha1.BundleDeployment, target string) ([]requirement.Package, error) {
	var deployments v1alpha1.BundleDeploymentList
	if err := r.Client.List(ctx, &deployments, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the deployments of namespace %s: %w", of.Namespace, err)
	}
	return spec.Packages(deployments.Items, of, target), nil
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
