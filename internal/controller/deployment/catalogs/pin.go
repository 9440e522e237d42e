// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"context"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// pin makes the BundleSource of the resolved bundle. A bundle that the catalog names by a tag is fetched by the tag first; once the
// source says which digest that is, by the digest.
func (st *Stage) pin(ctx context.Context, in *Input) error {
	resolved := in.Object.Status.Catalog.Resolved
	if resolved.Image == "" {
		source, err := st.ownedSource(ctx, in)
		if err != nil {
			return err
		}
		resolved.Image = digestFound(source, resolved.Reference)
		if was := in.Before.Status.Catalog; resolved.Image == "" && (was == nil || was.Resolved == nil) {
			resolved.Image = in.digestKept(source, resolved)
		}
	}
	in.Resolved.Catalog.Pinned = resolved.Image != ""
	in.Resolved.Catalog.Source = effective.CatalogBundleSource(in.Object.Spec.Catalog.Image, cmp.Or(resolved.Image, resolved.Reference))
	in.Resolved.Catalog.Annotations = in.annotations()
	return nil
}

// digestFound is a tagged image with the digest to which a source resolved it; "" if it did not.
func digestFound(source *v1alpha1.BundleSource, reference string) string {
	if source == nil || len(source.Spec.Sources) != 1 || len(source.Status.Resolved) != 1 || source.Spec.Sources[0].Image == nil ||
		source.Spec.Sources[0].Image.Reference != reference || source.Status.SourcesDigest != effective.SourcesDigest(&source.Spec) {
		return ""
	}
	if digest := source.Status.Resolved[0].Digest; digest != "" {
		return repositoryOf(reference) + "@" + digest
	}
	return ""
}

// digestKept is the image of the source if that is of the resolved bundle; "" if it is not. It is of use when the status was lost:
// what the tag points at now is no upgrade.
func (in *Input) digestKept(source *v1alpha1.BundleSource, resolved *v1alpha1.ResolvedBundle) string {
	if source == nil || len(source.Spec.Sources) != 1 || source.Spec.Sources[0].Image == nil ||
		source.Annotations[v1alpha1.CatalogPackageAnnotation] != in.Object.Spec.Catalog.Package ||
		source.Annotations[v1alpha1.CatalogBundleAnnotation] != resolved.Bundle {
		return ""
	}
	if kept := pinned(source.Spec.Sources[0].Image.Reference); repositoryOf(kept) == repositoryOf(resolved.Reference) {
		return kept
	}
	return ""
}

// annotations are the copy of the status in the BundleSource.
func (in *Input) annotations() map[string]string {
	status := in.Object.Status.Catalog
	all := map[string]string{
		v1alpha1.CatalogPackageAnnotation: in.Object.Spec.Catalog.Package, v1alpha1.CatalogBundleAnnotation: status.Resolved.Bundle,
		v1alpha1.CatalogVersionAnnotation: stage.FullVersion(status.Resolved), v1alpha1.CatalogAnnotation: stage.CatalogName(in.Object, status.Resolved),
	}
	if status.Installed != nil {
		all[v1alpha1.InstalledBundleAnnotation] = status.Installed.Bundle
		all[v1alpha1.InstalledVersionAnnotation] = status.Installed.Version
		all[v1alpha1.InstalledCatalogAnnotation] = status.Installed.Catalog
		all[v1alpha1.InstalledImageAnnotation] = status.Installed.Image
	}
	return all
}
