// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/packages"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Stage is what resolving a package needs beside its input.
type Stage struct {
	// Reader reads BundleCatalogs and BundleSources, from a cache.
	Reader client.Reader
	// Packages reads what catalogs say about packages.
	Packages *packages.Reader
	// Shared is the namespace with catalogs for all namespaces; "" for none.
	Shared string
	// Saw notes the digest of a package that a deployment looks at.
	Saw func(catalog types.NamespacedName, name, digest string)
}

// Input is what resolving a package reads and writes.
type Input struct {
	*stage.Subject
	Listed   *stage.Listing
	Resolved *stage.Resolved
}

// errUnset says that the process has no reader of packages.
var errUnset = errors.New("this process reads no catalogs")

// Resolve finds the bundle of spec.catalog. If that fails and it was resolved for the same spec.catalog before, the result of then
// stays, and the failure is reported beside it.
func (st *Stage) Resolve(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if in.Object.Spec.Catalog == nil {
		in.Object.Status.Catalog = nil
		return pipeline.Continue, nil
	}
	if in.Object.Status.Catalog == nil {
		in.Object.Status.Catalog = &v1alpha1.CatalogPackageStatus{}
	}
	if err := st.restoreInstalled(ctx, in); err != nil {
		return pipeline.Stop, err
	}
	in.Resolved.Catalog = &stage.Catalog{}
	if err := st.update(ctx, in); err != nil {
		if !in.resolvedBefore() {
			return pipeline.Stop, err
		}
		problem := failure.Of(err)
		in.Resolved.Catalog.Problem = &problem
	}
	if err := st.pin(ctx, in); err != nil {
		return pipeline.Stop, err
	}
	in.describe()
	return pipeline.Continue, nil
}

// resolvedBefore tells that there is a result for the current spec.catalog.
func (in *Input) resolvedBefore() bool {
	resolved := in.Object.Status.Catalog.Resolved
	return resolved != nil && resolved.Query == queryDigest(in.Object.Spec.Catalog)
}

// queryDigest identifies what spec.catalog asks for. How the image is pulled, and what is installed, do not count.
func queryDigest(of *v1alpha1.CatalogPackage) string {
	query := of.DeepCopy()
	query.Image, query.Installed = nil, nil
	return stage.DigestOfAll(format.CatalogQuery.Purpose("catalog-query"), query)
}

// UnderWay tells that the plan of the installed bundle was begun, and has neither become healthy nor failed for good. The next
// upgrade waits for that. A failed bundle that is going to be rolled back counts as under way.
func UnderWay(d *v1alpha1.BundleDeployment) bool {
	status := &d.Status
	if status.Catalog == nil || status.Catalog.Installed == nil || status.Catalog.Installed.Revision == "" {
		return false
	}
	revision := status.Catalog.Installed.Revision
	if status.Healthy.Revision == revision {
		return false
	}
	for _, record := range status.History {
		if record.Revision == revision {
			retried := record.Outcome == v1alpha1.OutcomeFailed && effective.RollsBack(&d.Spec) && status.Internal.Artifact != nil && status.Rejected.Revision == ""
			return record.Outcome == "" || retried
		}
	}
	return true // it was begun in this reconcile
}

// Advanced tells that a reconcile ended an upgrade, so that the next one can begin.
func Advanced(before, after *v1alpha1.BundleDeployment) bool {
	if after.Spec.Catalog == nil || after.Status.Catalog == nil || UnderWay(after) {
		return false
	}
	return UnderWay(before) || installedName(before) != installedName(after)
}

func installedName(of *v1alpha1.BundleDeployment) string {
	if of.Status.Catalog == nil || of.Status.Catalog.Installed == nil {
		return ""
	}
	return of.Status.Catalog.Installed.Bundle
}
