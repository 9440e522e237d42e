// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/cli/catalogs"
)

// neighbours reads other deployments as the user. What the user may not read is a note.
type neighbours struct{ *Previewer }

// Parent returns a deployment by its name.
func (n neighbours) Parent(ctx context.Context, key types.NamespacedName) (*v1alpha1.BundleDeployment, error) {
	found := &v1alpha1.BundleDeployment{}
	err := n.cluster.Client.Get(ctx, key, found)
	switch {
	case apierrors.IsForbidden(err):
		n.note("whether this deployment contains one that it is itself part of was not checked: %v", err)
		return nil, nil //nolint:nilnil // none is an answer
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // none is an answer
	}
	return found, err
}

// Requiring are the deployments of the namespace.
func (n neighbours) Requiring(ctx context.Context) ([]v1alpha1.BundleDeployment, error) {
	if n.listed != nil {
		return n.listed.Items, ctx.Err()
	}
	n.listed = &v1alpha1.BundleDeploymentList{}
	if n.previous.Target == "" {
		n.note("packages that other deployments have installed were not looked for: you may not read the namespace kube-system, which identifies the cluster")
		return nil, ctx.Err()
	}
	if err := n.cluster.Client.List(ctx, n.listed, client.InNamespace(n.Deployment.Namespace)); err != nil {
		n.note("packages that other deployments have installed, and what they require, were not looked for: %v", err)
	}
	return n.listed.Items, ctx.Err()
}

// Providing are the deployments of the namespace.
func (n neighbours) Providing(ctx context.Context, _ map[string]bool) ([]v1alpha1.BundleDeployment, error) {
	return n.Requiring(ctx)
}

// Offers are the packages of catalogs that provide what the plan lacks.
func (n neighbours) Offers(ctx context.Context, needs []requirement.Need) map[requirement.Need][]requirement.Offer {
	found, unread := catalogs.Offers(ctx, n.app, n.Deployment.Namespace, needs)
	for _, err := range unread {
		n.note("not searched for a package that provides what is missing: %v", err)
	}
	return found
}
