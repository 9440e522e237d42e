// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/dependency"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// depend holds a new revision or spec back until the deployments of spec.dependsOn are
// ready. The applied revision is reconciled regardless: a dependency that is temporarily
// not ready does not affect it.
func (r *Reconciler) depend(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if s.rulesErr != nil {
		return pipeline.Stop, s.rulesErr
	}
	key, wanted := client.ObjectKeyFromObject(s.object), s.object.Spec.DependsOn
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
	if cycle := dependency.CycleThrough(key.Name, others.DependsOn(s.object)); cycle != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonDependencyCycle, Stalled: true, Err: fmt.Errorf(
			"spec.dependsOn has a cycle: %s: remove one of these dependencies", strings.Join(cycle, "→"))}
	}
	if !s.appliedAsIs() {
		if err := dependency.Lacking(ctx, s.object, others); err != nil {
			return pipeline.Stop, err
		}
	}
	r.dependencies.Set(key, nil)
	return pipeline.Continue, nil
}

// appliedAsIs tells whether the artifact was applied completely with the current spec.
func (s *state) appliedAsIs() bool {
	applied := conditions.Get(s.object, v1alpha1.AppliedCondition)
	return applied != nil && !s.changedInputs() && conditions.IsTrue(s.object, v1alpha1.AppliedCondition) &&
		applied.ObservedGeneration == s.object.Generation && s.object.Status.LastAppliedRevision == s.revision()
}
