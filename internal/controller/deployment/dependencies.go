// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/dependency"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// depend holds a new revision or spec back until the deployments of spec.dependsOn are
// ready. The applied revision is reconciled regardless: a dependency that is temporarily
// not ready does not affect it.
func (r *Reconciler) depend(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.RulesErr != nil {
		return pipeline.Stop, s.RulesErr
	}
	key, wanted := s.Key(), s.Object.Spec.DependsOn
	if len(wanted) == 0 {
		r.dependencies.Set(key, nil)
		return pipeline.Continue, nil
	}
	names := map[string]bool{}
	for _, dependency := range wanted {
		names[dependency.Name] = true
	}
	r.dependencies.Set(key, names) // before the first read: later changes wake the deployment
	others, err := dependency.List(ctx, r.Client, key.Namespace)
	if err != nil {
		return pipeline.Stop, err
	}
	if cycle := dependency.CycleThrough(key.Name, others.DependsOn(s.Object)); cycle != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonDependencyCycle, Stalled: true, Err: fmt.Errorf(
			"spec.dependsOn has a cycle: %s: remove one of these dependencies", strings.Join(cycle, "→"))}
	}
	if !s.resolved.AppliedAsIs(&s.Subject) {
		if err := dependency.Lacking(ctx, s.Object, others); err != nil {
			return pipeline.Stop, err
		}
	}
	r.dependencies.Set(key, nil)
	return pipeline.Continue, nil
}
