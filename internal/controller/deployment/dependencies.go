// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/expression"
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
		r.dependencies.set(key, nil)
		return pipeline.Continue, nil
	}
	names := map[string]bool{}
	for _, dependency := range wanted {
		names[dependency.Name] = true
	}
	r.dependencies.set(key, names) // before the first read: later changes wake the deployment
	others, err := r.neighbours(ctx, key.Namespace)
	if err != nil {
		return pipeline.Stop, err
	}
	if cycle := cycleThrough(key.Name, others.dependsOn(s.object)); cycle != nil {
		return pipeline.Stop, failure{reason: v1alpha1.ReasonDependencyCycle, stalled: true, err: fmt.Errorf(
			"spec.dependsOn has a cycle: %s: remove one of these dependencies", strings.Join(cycle, "→"))}
	}
	if !s.appliedAsIs() {
		if err := lackingDependencies(ctx, s.object, others); err != nil {
			return pipeline.Stop, err
		}
	}
	r.dependencies.set(key, nil)
	return pipeline.Continue, nil
}

// appliedAsIs tells whether the artifact was applied completely with the current spec.
func (s *state) appliedAsIs() bool {
	applied := conditions.Get(s.object, v1alpha1.AppliedCondition)
	return applied != nil && !s.changedInputs() && conditions.IsTrue(s.object, v1alpha1.AppliedCondition) &&
		applied.ObservedGeneration == s.object.Generation && s.object.Status.LastAppliedRevision == s.revision()
}

// neighbours are the deployments of one namespace by name. They are shared with the
// cache and must not be changed.
type neighbours map[string]*v1alpha1.BundleDeployment

func (r *Reconciler) neighbours(ctx context.Context, namespace string) (neighbours, error) {
	var list v1alpha1.BundleDeploymentList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the deployments of namespace %s: %w", namespace, err)
	}
	all := make(neighbours, len(list.Items))
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all, nil
}

// dependsOn returns the names that a deployment depends on; the current object is used
// for the deployment itself, the list for the others.
func (n neighbours) dependsOn(itself *v1alpha1.BundleDeployment) func(string) []string {
	return func(name string) []string {
		of := n[name]
		if name == itself.Name {
			of = itself
		}
		var names []string
		if of != nil {
			for _, dependency := range of.Spec.DependsOn {
				names = append(names, dependency.Name)
			}
		}
		return names
	}
}

// cycleThrough finds the shortest cycle through a deployment, with both ends; nil when
// there is none. Cycles among its dependencies alone do not count.
func cycleThrough(start string, dependsOn func(string) []string) []string {
	from := map[string]string{}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, next := range dependsOn(at) {
			if next == start {
				return wayTo(start, at, from)
			}
			if _, seen := from[next]; !seen {
				from[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}

func wayTo(start, last string, from map[string]string) []string {
	way := []string{start}
	for at := last; at != start; at = from[at] {
		way = append(way, at)
	}
	way = append(way, start)
	slices.Reverse(way)
	return way
}

// lackingDependencies lists all dependencies that are not ready, a line each.
func lackingDependencies(ctx context.Context, d *v1alpha1.BundleDeployment, others neighbours) error {
	var lines []string
	for _, dependency := range d.Spec.DependsOn {
		name := "bundledeployment " + d.Namespace + "/" + dependency.Name
		why, err := notReady(ctx, dependency, others[dependency.Name], d)
		if err != nil {
			return err
		}
		if why != "" {
			lines = append(lines, name+" "+why)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return failure{reason: v1alpha1.ReasonDependencyNotReady, waiting: true, woken: true,
		err: errors.New("waiting for spec.dependsOn: " + strings.Join(lines, "\n"))}
}

// notReady says why a dependency keeps a deployment waiting; "" when it does not. The
// message is stable while nothing changes.
func notReady(ctx context.Context, dependency v1alpha1.Dependency, other, d *v1alpha1.BundleDeployment) (string, error) {
	ready, err := compileReady(dependency)
	switch {
	case err != nil:
		return "", err
	case other == nil:
		return "does not exist: create it, or correct spec.dependsOn", nil
	case !other.DeletionTimestamp.IsZero():
		return "is being deleted", nil
	case other.Status.ObservedGeneration != other.Generation:
		return "has changed, and is not ready again yet", nil
	case !conditions.IsTrue(other, meta.ReadyCondition):
		if reason := conditions.GetReason(other, meta.ReadyCondition); reason != "" {
			return "is not ready: " + reason, nil
		}
		return "is not ready", nil
	case ready == nil:
		return "", nil
	}
	return evaluateReady(ctx, dependency, ready, other, d)
}

// compileReady reads the expression of a dependency; nil when it has none.
func compileReady(dependency v1alpha1.Dependency) (*expression.Expression, error) {
	if dependency.ReadyExpr == "" {
		return nil, nil //nolint:nilnil // none is an answer
	}
	compiled, err := expression.Compile(dependency.ReadyExpr, "dep", "self")
	if err != nil {
		return nil, invalidExpression("spec.dependsOn, readyExpr of "+dependency.Name, err)
	}
	return compiled, nil
}

// invalidExpression is the failure of an expression that the user has to correct.
func invalidExpression(where string, err error) error {
	return failure{reason: v1alpha1.ReasonInvalidExpression, stalled: true, err: fmt.Errorf("%s: %w: correct it", where, err)}
}

func evaluateReady(ctx context.Context, dependency v1alpha1.Dependency, ready *expression.Expression, other, d *v1alpha1.BundleDeployment) (string, error) {
	data := map[string]any{}
	for name, object := range map[string]*v1alpha1.BundleDeployment{"dep": other, "self": d} {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return "", fmt.Errorf("reading bundledeployment %s/%s: %w", object.Namespace, object.Name, err)
		}
		fields["apiVersion"], fields["kind"] = v1alpha1.GroupVersion.String(), v1alpha1.BundleDeploymentKind
		data[name] = fields
	}
	holds, err := ready.Holds(ctx, data)
	var known *expression.Error
	switch {
	case expression.IsExpensive(err):
		return "", invalidExpression("spec.dependsOn, readyExpr of "+dependency.Name, err)
	case errors.As(err, &known):
		return "is ready, but its readyExpr fails: " + known.Message, nil
	case err != nil:
		return "", err
	case !holds:
		return "is ready, but its readyExpr is not true", nil
	}
	return "", nil
}
