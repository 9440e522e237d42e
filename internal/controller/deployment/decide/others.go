// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/controller/deployment/dependency"
)

// neighbours reads other deployments from a cache with the indexes of package dependency.
type neighbours struct {
	reader    client.Reader
	namespace string
	offers    func(ctx context.Context, namespace string, needs []requirement.Need) map[requirement.Need][]requirement.Offer
}

// Parent returns a deployment by its name.
func (n neighbours) Parent(ctx context.Context, key types.NamespacedName) (*v1alpha1.BundleDeployment, error) {
	found := &v1alpha1.BundleDeployment{}
	err := n.reader.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	return found, err
}

// Requiring are the deployments of the namespace that require something.
func (n neighbours) Requiring(ctx context.Context) ([]v1alpha1.BundleDeployment, error) {
	return dependency.Requiring(ctx, n.reader, n.namespace)
}

// Providing are the deployments of the namespace that provide one of the packages.
func (n neighbours) Providing(ctx context.Context, packages map[string]bool) ([]v1alpha1.BundleDeployment, error) {
	return dependency.Providing(ctx, n.reader, n.namespace, packages)
}

// Offers are the packages of catalogs that provide what a plan lacks.
func (n neighbours) Offers(ctx context.Context, needs []requirement.Need) map[requirement.Need][]requirement.Offer {
	if n.offers == nil {
		return nil
	}
	return n.offers(ctx, n.namespace, needs)
}
