// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/dependency"
	"github.com/satchel-dev/satchel/internal/controller/sourceusers"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Unindexed is a client without a cache that answers as if it had the indexes of BundleDeployments: those of a source, and those that
// require something.
func Unindexed(c client.Client) client.Client { return unindexed{c} }

type unindexed struct{ client.Client }

// List implements client.Reader.
func (u unindexed) List(ctx context.Context, list client.ObjectList, given ...client.ListOption) error {
	options := &client.ListOptions{}
	options.ApplyOptions(given)
	deployments, ok := list.(*v1alpha1.BundleDeploymentList)
	if !ok || options.FieldSelector == nil {
		return u.Client.List(ctx, list, given...)
	}
	source, bySource := options.FieldSelector.RequiresExactMatch(sourceusers.Field)
	_, requiring := options.FieldSelector.RequiresExactMatch(dependency.RequiringField)
	if !bySource && !requiring {
		return u.Client.List(ctx, list, given...)
	}
	options.FieldSelector = nil
	if err := u.Client.List(ctx, list, options); err != nil {
		return err
	}
	deployments.Items = slices.DeleteFunc(deployments.Items, func(d v1alpha1.BundleDeployment) bool {
		return bySource && effective.SourceName(&d) != source || requiring && len(d.Status.Healthy.Requires) == 0
	})
	return nil
}
