// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/dependents"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/spec"
)

// Neighbours reads what a plan depends on beside the cluster of its objects: other deployments of this cluster, and catalogs. What it
// returns is not changed.
type Neighbours interface {
	// Parent returns a deployment by its name; nil if there is none.
	Parent(ctx context.Context, key types.NamespacedName) (*v1alpha1.BundleDeployment, error)
	// Requiring are the deployments of the namespace that require something. There may be others among them.
	Requiring(ctx context.Context) ([]v1alpha1.BundleDeployment, error)
	// Providing are the deployments of the namespace that provide one of the packages. There may be others among them.
	Providing(ctx context.Context, packages map[string]bool) ([]v1alpha1.BundleDeployment, error)
	// Offers finds packages of the catalogs that the namespace sees which provide what a plan lacks. What it does not find is left out.
	Offers(ctx context.Context, needs []requirement.Need) map[requirement.Need][]requirement.Offer
}

// lineage finds the parents of a deployment that installs other deployments: the one that
// installed it, and so on, by their labels. Parents in other clusters are not visible, and have
// other UIDs.
func (r Request) lineage(ctx context.Context) (violation.Lineage, error) {
	if !slices.ContainsFunc(r.Bundle.Objects, func(o *unstructured.Unstructured) bool { return violation.IsDeployment(inventory.IDOf(o)) }) {
		return violation.Lineage{}, nil
	}
	found := violation.Lineage{Members: map[types.UID]string{r.Deployment.UID: "this deployment itself"}}
	for at := r.Deployment; found.Depth < violation.MostNested; {
		owner := inventory.OwnerOf(at.Labels)
		if owner.IsZero() {
			return found, nil
		}
		key := types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}
		above, err := r.Parent(ctx, key)
		if err != nil {
			return found, fmt.Errorf("reading bundledeployment %s, which brought this one: %w", key, err)
		}
		if above == nil {
			return found, nil // it is gone, or in another cluster
		}
		if _, known := found.Members[above.UID]; known {
			return found, nil // the labels are forged
		}
		found.Members[above.UID] = fmt.Sprintf("the deployment %s, which installed this one", key)
		found.Depth++
		at = above
	}
	return found, nil
}

// packages are those with one of the names that other deployments of the same namespace have installed on the
// cluster. Packages of other namespaces stay private.
func (r Request) packages(ctx context.Context, names map[string]bool) ([]requirement.Package, error) {
	providing, err := r.Providing(ctx, names)
	if err != nil {
		return nil, err
	}
	return spec.Packages(providing, r.Deployment, r.Previous.Target), nil
}

// protectDependents adds to the plan what it would take from other deployments of the namespace.
func (m *Made) protectDependents(ctx context.Context) (err error) {
	r := m.request
	change := spec.ChangeOf(m.Plan, r.Deployment, r.Revision, r.Bundle.Package)
	m.Refusing, err = change.Judge(ctx, m.client.Kinds(), m.Observed.RequirementsPolicy, r.dependents, &m.Plan)
	return err
}

// dependents are the other deployments of the namespace: what they require, and what provides it.
func (r Request) dependents(ctx context.Context) (of dependents.Others, err error) {
	requiring, err := r.Requiring(ctx)
	if err != nil {
		return of, err
	}
	if of.Dependents = spec.Dependents(requiring, r.Deployment, r.Previous.Target); len(of.Dependents) == 0 {
		return of, nil
	}
	names := map[string]bool{}
	for _, one := range of.Dependents {
		maps.Copy(names, requiredPackages(one.Requires))
	}
	of.Packages, err = r.packages(ctx, names)
	return of, err
}
