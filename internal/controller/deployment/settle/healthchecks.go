// SPDX-License-Identifier: Apache-2.0

package settle

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
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// RulesOf compiles the health rules of a deployment. Objects of spec.healthChecks may
// be missing, and may have any kind.
func RulesOf(spec *v1alpha1.BundleDeploymentSpec) (health.Rules, error) {
	all := make([]health.Expressions, 0, len(spec.HealthCheckExprs))
	for _, of := range spec.HealthCheckExprs {
		all = append(all, health.Expressions{
			Kind:       schema.FromAPIVersionAndKind(of.APIVersion, of.Kind),
			InProgress: of.InProgress, Failed: of.Failed, Current: of.Current,
		})
	}
	rules, err := health.NewRules(all)
	rules.Everything = len(spec.HealthChecks) > 0
	if err != nil {
		return rules, failure.InvalidExpression("spec.healthCheckExprs", err)
	}
	return rules, nil
}

// healthChecks are the objects that spec.healthChecks names. One of an unserved kind
// has no resource, and so is not healthy.
func healthChecks(ctx context.Context, in *Input) ([]plan.Object, error) {
	objects := make([]plan.Object, 0, len(in.Object.Spec.HealthChecks))
	for _, check := range in.Object.Spec.HealthChecks {
		kind := schema.FromAPIVersionAndKind(check.APIVersion, check.Kind)
		object := plan.Object{ID: inventory.ID{Group: kind.Group, Kind: kind.Kind, Namespace: check.Namespace, Name: check.Name}}
		found, err := in.Resolved.Access.Client.Kinds().Find(ctx, kind)
		switch {
		case discovery.IsNoKind(err):
			objects = append(objects, object)
			continue
		case err != nil:
			return nil, fmt.Errorf("looking for %s of spec.healthChecks: %w", object.ID, err)
		case !found.Namespaced:
			object.Namespace = ""
		case object.Namespace == "":
			object.Namespace = effective.InstallNamespace(in.Object)
		}
		object.Kind = plan.Kind{Resource: found.Resource, Namespaced: found.Namespaced}
		objects = append(objects, object)
	}
	return objects, nil
}

// lookedAt is the number of objects that a health report covers.
func (in *Input) lookedAt() int {
	if len(in.Object.Spec.HealthChecks) > 0 {
		return len(in.Note.Health.Objects)
	}
	return in.Note.Health.Total
}

// healthyWords says that all checked objects are healthy.
func (in *Input) healthyWords() string {
	if checks := len(in.Object.Spec.HealthChecks); checks > 0 {
		return fmt.Sprintf("the %d of spec.healthChecks are healthy", checks)
	}
	return "all healthy"
}
