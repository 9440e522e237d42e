// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Repair is what the plan of a repair is made of: some objects that were applied before, and their entries of the inventory.
type Repair struct {
	Deployment *v1alpha1.BundleDeployment
	Owner      inventory.Owner
	Objects    []*unstructured.Unstructured
	Listed     inventory.Inventory
	HashKey    []byte
}

// MakeRepair plans to apply some objects again. If they are not all there to be updated, or something else keeps the plan from being
// executed, it is not enough, and a whole plan has to be made.
func MakeRepair(ctx context.Context, client *tenant.Client, r Repair) (made plan.Plan, observed plan.Input, enough bool, err error) {
	ignored, err := spec.Ignore(r.Deployment)
	if err != nil {
		return made, observed, false, &InvalidError{Err: err}
	}
	observed, err = observe.Cluster(ctx, client, observe.Request{
		Owner: r.Owner, Desired: r.Objects, Previous: r.Listed, HashKey: r.HashKey, Ignore: ignored,
		InstallNamespace: effective.InstallNamespace(r.Deployment),
	})
	if err != nil {
		return made, observed, false, err
	}
	made = plan.Make(observed)
	made.Prune, made.Keeping = nil, true
	return made, observed, len(made.Violations) == 0 && made.Count(plan.Create, plan.Update, plan.Adopt) == 0, nil
}
