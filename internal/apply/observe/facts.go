// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

// askFacts reads what the requirements are about: whether kinds are served, by
// the cluster or by CRDs of the bundle, and the version of the cluster. Where the account
// may not read that, the plan names the missing permission.
func (o Request) askFacts(ctx context.Context, client *tenant.Client, in *plan.Input) error {
	kinds, version := in.ToAsk()
	definitions := crds.Definitions(o.Desired)
	in.Facts.Kinds = map[schema.GroupVersionKind]bool{}
	for _, kind := range kinds {
		err := serves(ctx, client.Kinds(), definitions, kind)
		if err != nil && !discovery.IsNoKind(err) {
			return fmt.Errorf("observing what the bundle requires: %w", err)
		}
		in.Facts.Kinds[kind] = err == nil
	}
	if !version {
		return nil
	}
	text, err := client.ServerVersion(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("observing what the bundle requires: %w", err)
	}
	in.Facts.KubeVersion = text
	return nil
}

// serves is findKind, where no version means any.
func serves(ctx context.Context, kinds *discovery.Cache, definitions map[schema.GroupKind]crds.Definition, kind schema.GroupVersionKind) error {
	if kind.Version != "" {
		_, err := findKind(ctx, kinds, definitions, kind)
		return err
	}
	if definition, found := definitions[kind.GroupKind()]; found && len(definition.Served) > 0 {
		return nil
	}
	_, err := kinds.Preferred(ctx, kind.GroupKind())
	return err
}
