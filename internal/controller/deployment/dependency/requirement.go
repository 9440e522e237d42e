// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// RequiringField is the name of an index of the deployments that require packages or kinds.
const RequiringField = "satchel.dev/requiring"

// Index indexes the deployments that require something in the cache of a manager, which needs it once, before it starts.
func Index(mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.BundleDeployment{}, RequiringField, func(object client.Object) []string {
		if d, ok := object.(*v1alpha1.BundleDeployment); ok && len(d.Status.Requires) > 0 {
			return []string{"true"}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing bundledeployments: %w", err)
	}
	return nil
}

// Requiring lists the deployments of a namespace that require packages or kinds. They are shared with the cache, and must not be
// changed. The reader has to be a cache with the index.
func Requiring(ctx context.Context, reader client.Reader, namespace string) ([]v1alpha1.BundleDeployment, error) {
	var list v1alpha1.BundleDeploymentList
	err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{RequiringField: "true"}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the deployments of namespace %s that require something: %w", namespace, err)
	}
	return list.Items, nil
}
