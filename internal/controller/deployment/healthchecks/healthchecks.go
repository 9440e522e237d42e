// SPDX-License-Identifier: Apache-2.0

// Package healthchecks reads spec.health.expressions and spec.health.checks of a BundleDeployment: the rules, and the objects that
// they are applied to.
package healthchecks

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/expression"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Rules compiles the health rules of a deployment. Objects of spec.health.checks may be missing, and may have any kind. It returns a
// failure.Error for an invalid expression.
func Rules(spec *v1alpha1.BundleDeploymentSpec, budget *expression.Budget) (health.Rules, error) {
	all := make([]health.Expressions, 0, len(spec.Health.Expressions))
	for _, of := range spec.Health.Expressions {
		all = append(all, health.Expressions{
			Kind:       schema.FromAPIVersionAndKind(of.APIVersion, of.Kind),
			InProgress: of.InProgress, Failed: of.Failed, Current: of.Current,
		})
	}
	rules, err := health.NewRules(all, budget)
	rules.Everything = len(spec.Health.Checks) > 0
	if err != nil {
		return rules, failure.InvalidExpression("spec.health.expressions", err)
	}
	return rules, nil
}

// Objects are the objects that spec.health.checks names. One of a kind that is not served has no resource, and so is not healthy.
func Objects(ctx context.Context, d *v1alpha1.BundleDeployment, kinds *discovery.Cache) ([]plan.Object, error) {
	objects := make([]plan.Object, 0, len(d.Spec.Health.Checks))
	for _, check := range d.Spec.Health.Checks {
		kind := schema.FromAPIVersionAndKind(check.APIVersion, check.Kind)
		object := plan.Object{ID: inventory.ID{Group: kind.Group, Kind: kind.Kind, Namespace: check.Namespace, Name: check.Name}}
		found, err := kinds.Find(ctx, kind)
		switch {
		case discovery.IsNoKind(err):
			objects = append(objects, object)
			continue
		case err != nil:
			return nil, fmt.Errorf("looking for %s of spec.health.checks: %w", object.ID, err)
		case !found.Namespaced:
			object.Namespace = ""
		case object.Namespace == "":
			object.Namespace = effective.InstallNamespace(d)
		}
		object.Kind = plan.Kind{Resource: found.Resource, Namespaced: found.Namespaced}
		objects = append(objects, object)
	}
	return objects, nil
}
