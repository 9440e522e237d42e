// SPDX-License-Identifier: Apache-2.0

// Package sourceusers finds the BundleDeployments of a BundleSource in the cache. A source of a fleet has thousands of them, and
// each event of the source asks for them: they are found by an index, and not copied.
package sourceusers

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Field is the name of the index.
const Field = "satchel.dev/source"

// Index indexes BundleDeployments by their BundleSource in the cache of a manager. Each needs it once, before it starts.
func Index(mgr ctrl.Manager) error { return IndexIn(mgr.GetFieldIndexer()) }

// IndexIn is Index for a cache.
func IndexIn(indexer client.FieldIndexer) error {
	err := indexer.IndexField(context.Background(), &v1alpha1.BundleDeployment{}, Field, func(object client.Object) []string {
		if d, ok := object.(*v1alpha1.BundleDeployment); ok && effective.SourceName(d) != "" {
			return []string{effective.SourceName(d)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing bundledeployments: %w", err)
	}
	return nil
}

// Trim drops what the source controller does not read of a BundleDeployment, before it is cached.
func Trim(d *v1alpha1.BundleDeployment) {
	d.Annotations = nil
	d.Spec = v1alpha1.BundleDeploymentSpec{SourceRef: d.Spec.SourceRef}
	d.Status = v1alpha1.BundleDeploymentStatus{
		Applied: v1alpha1.AppliedRevision{Revision: d.Status.Applied.Revision}, Healthy: v1alpha1.HealthyRevision{Revision: d.Status.Healthy.Revision}, Attempted: v1alpha1.AttemptedRevision{Revision: d.Status.Attempted.Revision},
	}
}

// Each calls do for each BundleDeployment of a source. These are the objects of the cache: do must neither change nor keep them.
// The reader has to be a cache with the index.
func Each(ctx context.Context, reader client.Reader, source client.ObjectKey, do func(*v1alpha1.BundleDeployment)) error {
	var deployments v1alpha1.BundleDeploymentList
	err := reader.List(ctx, &deployments, client.InNamespace(source.Namespace), client.MatchingFields{Field: source.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the deployments of bundlesource %s: %w", source, err)
	}
	for i := range deployments.Items {
		do(&deployments.Items[i])
	}
	return nil
}
