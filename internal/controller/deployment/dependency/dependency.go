// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/expression"
)

// Deployments are deployments of one namespace by name. They are shared with the
// cache and must not be changed.
type Deployments map[string]*v1alpha1.BundleDeployment

// Upstream reads the direct and indirect dependencies of a deployment, one by one: with thousands of deployments in a namespace,
// most concern it in no way. Those that do not exist are missing.
func Upstream(ctx context.Context, reader client.Reader, of *v1alpha1.BundleDeployment) (Deployments, error) {
	found, sought := Deployments{}, map[string]bool{of.Name: true}
	for queue := []*v1alpha1.BundleDeployment{of}; len(queue) > 0; queue = queue[1:] {
		for _, dependency := range queue[0].Spec.DependsOn {
			if sought[dependency.Name] {
				continue
			}
			sought[dependency.Name] = true
			other, key := &v1alpha1.BundleDeployment{}, client.ObjectKey{Namespace: of.Namespace, Name: dependency.Name}
			err := reader.Get(ctx, key, other, client.UnsafeDisableDeepCopy)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("reading bundledeployment %s: %w", key, err)
			}
			found[dependency.Name] = other
			queue = append(queue, other)
		}
	}
	return found, nil
}

// DependsOn returns the names that a deployment depends on; the current object is used
// for the deployment itself, what was read for the others.
func (n Deployments) DependsOn(itself *v1alpha1.BundleDeployment) func(string) []string {
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

// Downstream lists the names of all direct and indirect dependents of a deployment. The reader has to be a cache with the index.
func Downstream(ctx context.Context, reader client.Reader, namespace, of string) ([]string, error) {
	var all []string
	seen := map[string]bool{of: true}
	for queue := []string{of}; len(queue) > 0; queue = queue[1:] {
		var users v1alpha1.BundleDeploymentList
		err := reader.List(ctx, &users, client.InNamespace(namespace), client.MatchingFields{DependencyField: queue[0]}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing the deployments that depend on bundledeployment %s/%s: %w", namespace, queue[0], err)
		}
		for i := range users.Items {
			if name := users.Items[i].Name; !seen[name] {
				seen[name] = true
				queue = append(queue, name)
				all = append(all, name)
			}
		}
	}
	return all, nil
}

// CycleThrough finds the shortest cycle through a deployment, with both ends; nil when
// there is none. Cycles among its dependencies alone do not count.
func CycleThrough(start string, dependsOn func(string) []string) []string {
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

// Lacking lists all dependencies that are not ready, a line each. The budget bounds what their expressions take.
func Lacking(ctx context.Context, d *v1alpha1.BundleDeployment, others Deployments, budget *expression.Budget) error {
	var lines []string
	for _, dependency := range d.Spec.DependsOn {
		name := "bundledeployment " + d.Namespace + "/" + dependency.Name
		why, err := notReady(ctx, dependency, others[dependency.Name], d, budget)
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
	return failure.Error{Reason: v1alpha1.ReasonDependencyNotReady, Waiting: true, Woken: true,
		Err: errors.New("waiting for spec.dependsOn: " + strings.Join(lines, "\n"))}
}

// notReady says why a dependency keeps a deployment waiting; "" when it does not. The
// message is stable while nothing changes.
func notReady(ctx context.Context, dependency v1alpha1.Dependency, other, d *v1alpha1.BundleDeployment, budget *expression.Budget) (string, error) {
	ready, err := compileReady(dependency, budget)
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
	return evaluateReady(ctx, dependency, ready, other, d, budget)
}

// compileReady reads the expression of a dependency; nil when it has none.
func compileReady(dependency v1alpha1.Dependency, budget *expression.Budget) (*expression.Expression, error) {
	if dependency.ReadyExpr == "" {
		return nil, nil //nolint:nilnil // none is an answer
	}
	compiled, err := expression.Compile(budget, dependency.ReadyExpr, "dep", "self")
	if err != nil {
		return nil, failure.InvalidExpression("spec.dependsOn, readyExpr of "+dependency.Name, err)
	}
	return compiled, nil
}

func evaluateReady(ctx context.Context, dependency v1alpha1.Dependency, ready *expression.Expression, other, d *v1alpha1.BundleDeployment,
	budget *expression.Budget,
) (string, error) {
	data := map[string]any{}
	for name, object := range map[string]*v1alpha1.BundleDeployment{"dep": other, "self": d} {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return "", fmt.Errorf("reading bundledeployment %s/%s: %w", object.Namespace, object.Name, err)
		}
		fields["apiVersion"], fields["kind"] = v1alpha1.GroupVersion.String(), v1alpha1.BundleDeploymentKind
		data[name] = fields
	}
	holds, err := ready.Holds(ctx, budget, data)
	var known *expression.Error
	switch {
	case expression.IsExpensive(err):
		return "", failure.InvalidExpression("spec.dependsOn, readyExpr of "+dependency.Name, err)
	case errors.As(err, &known):
		return "is ready, but its readyExpr fails: " + known.Message, nil
	case err != nil:
		return "", err
	case !holds:
		return "is ready, but its readyExpr is not true", nil
	}
	return "", nil
}
