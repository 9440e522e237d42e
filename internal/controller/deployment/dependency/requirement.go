// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Names of indexes.
const (
	// RequiringField is that of the deployments that require packages or kinds.
	RequiringField = "satchel.dev/requiring"
	// DependencyField is that of deployments by the names of their dependencies.
	DependencyField = "satchel.dev/dependency"
	// PackageField is that of deployments by the name of the package that they provide.
	PackageField = "satchel.dev/package"
)

// Index indexes the deployments that require or provide something, and those with dependencies, in the cache of a manager, which
// needs it once, before it starts.
func Index(mgr ctrl.Manager) error { return IndexIn(mgr.GetFieldIndexer()) }

// IndexIn is Index for a cache.
func IndexIn(indexer client.FieldIndexer) error {
	var failed []error
	for field, values := range map[string]func(*v1alpha1.BundleDeployment) []string{
		RequiringField: requiring, DependencyField: dependencies, PackageField: provided,
	} {
		failed = append(failed, indexer.IndexField(context.Background(), &v1alpha1.BundleDeployment{}, field, func(object client.Object) []string {
			if d, ok := object.(*v1alpha1.BundleDeployment); ok {
				return values(d)
			}
			return nil
		}))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("indexing bundledeployments: %w", err)
	}
	return nil
}

func requiring(d *v1alpha1.BundleDeployment) []string {
	if len(d.Status.Healthy.Requires) > 0 {
		return []string{"true"}
	}
	return nil
}

func dependencies(d *v1alpha1.BundleDeployment) []string {
	names := make([]string, 0, len(d.Spec.DependsOn))
	for _, dependency := range d.Spec.DependsOn {
		names = append(names, dependency.Name)
	}
	return names
}

func provided(d *v1alpha1.BundleDeployment) []string {
	if d.Status.Healthy.Package != nil {
		return []string{d.Status.Healthy.Package.Name}
	}
	return nil
}

// Requiring lists the deployments of a namespace that require packages or kinds. They are shared with the cache, and must not be
// changed. The reader has to be a cache with the index.
func Requiring(ctx context.Context, reader client.Reader, namespace string) ([]v1alpha1.BundleDeployment, error) {
	var list v1alpha1.BundleDeploymentList
	err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{RequiringField: "true"}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the deployments of namespace %s that require something: %w", namespace, err)
	}
	return list.Items, nil
}

// Providing lists the deployments of a namespace that provide one of the packages, as Requiring does.
func Providing(ctx context.Context, reader client.Reader, namespace string, packages map[string]bool) ([]v1alpha1.BundleDeployment, error) {
	var all []v1alpha1.BundleDeployment
	for name := range packages {
		var list v1alpha1.BundleDeploymentList
		err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{PackageField: name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing the deployments of namespace %s that provide package %s: %w", namespace, name, err)
		}
		all = append(all, list.Items...)
	}
	return all, nil
}
