// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// lineage finds the parents of a deployment that installs other deployments: the one that
// installed it, and so on, by their labels. Parents in other clusters are not visible, and have
// other UIDs.
func (r *Reconciler) lineage(ctx context.Context, d *v1alpha1.BundleDeployment, desired []*unstructured.Unstructured) (violation.Lineage, error) {
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
		err := r.Client.Get(ctx, key, above)
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
