// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/controller/deployment/dependency"
	"github.com/satchel-dev/satchel/internal/spec"
)

// lineage finds the parents of a deployment that installs other deployments: the one that
// installed it, and so on, by their labels. Parents in other clusters are not visible, and have
// other UIDs.
func (st *Stage) lineage(ctx context.Context, d *v1alpha1.BundleDeployment, desired []*unstructured.Unstructured) (violation.Lineage, error) {
	if !slices.ContainsFunc(desired, func(o *unstructured.Unstructured) bool { return violation.IsDeployment(inventory.IDOf(o)) }) {
		return violation.Lineage{}, nil
	}
	found := violation.Lineage{Members: map[types.UID]string{d.UID: "this deployment itself"}}
	for at := d; found.Depth < violation.MostNested; {
		owner := inventory.OwnerOf(at.Labels)
		if owner.IsZero() {
			return found, nil
		}
		key := client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}
		above := &v1alpha1.BundleDeployment{}
		err := st.Reader.Get(ctx, key, above)
		if apierrors.IsNotFound(err) {
			return found, nil // it is gone, or in another cluster
		}
		if err != nil {
			return found, fmt.Errorf("reading bundledeployment %s, which brought this one: %w", key, err)
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

// packages are those with one of the names that other deployments of the same namespace have installed on a
// cluster. Packages of other namespaces stay private.
func (st *Stage) packages(ctx context.Context, of *v1alpha1.BundleDeployment, target string, names map[string]bool) ([]requirement.Package, error) {
	providing, err := dependency.Providing(ctx, st.Reader, of.Namespace, names)
	if err != nil {
		return nil, err
	}
	return spec.Packages(providing, of, target), nil
}

// offers are the packages of catalogs that provide what keeps the plan from being executed. Nothing is looked up for a plan that
// lacks nothing, for unmet requirements that are only a warning, and while the applied revision is kept.
func (st *Stage) offers(ctx context.Context, in *Input, observed plan.Input) map[requirement.Need][]requirement.Offer {
	if in.Keeping || st.Offers == nil {
		return nil
	}
	needs := spec.Needs(observed)
	if len(needs) == 0 {
		return nil
	}
	return st.Offers(ctx, in.Object.Namespace, needs)
}

// namesOf are the names of the required packages.
func namesOf(requirements []requirement.Requirement) map[string]bool {
	names := map[string]bool{}
	for _, one := range requirements {
		if one.Kind == requirement.RequirePackage {
			names[one.Name] = true
		}
		maps.Copy(names, namesOf(one.Of))
	}
	return names
}
