// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
)

// restoreInstalled finds out which bundle is installed if the status does not say it. The first line that holds decides.
//
//	the owned BundleSource names it       that
//	spec.catalog.installed names it       that
//	objects are installed                 Stalled
//	else                                  none
func (st *Stage) restoreInstalled(ctx context.Context, in *Input) error {
	status := in.Object.Status.Catalog
	if status.Installed != nil {
		return nil
	}
	source, err := st.ownedSource(ctx, in)
	if err != nil {
		return err
	}
	if status.Installed = installedIn(source, in.Object.Spec.Catalog.Package); status.Installed != nil {
		return nil
	}
	if given := in.Object.Spec.Catalog.Installed; given != nil {
		status.Installed = &v1alpha1.InstalledBundle{Bundle: given.Bundle, Version: given.Version}
		return nil
	}
	if in.Listed.Current().Len() == 0 {
		return nil
	}
	return failure.Error{Reason: v1alpha1.ReasonInstalledUnknown, Stalled: true, Err: errors.New(
		"objects are installed, and neither the status nor the BundleSource of this deployment says which bundle of the package they are: " +
			"set spec.catalog.installed to its name and version, such as {bundle: shop.v1.0.0, version: 1.0.0}")}
}

// installedIn is the bundle of a package that is installed, as the annotations of a source say; nil if they do not. What cannot be a
// catalog, and an image without a digest, are left out.
func installedIn(source *v1alpha1.BundleSource, name string) *v1alpha1.InstalledBundle {
	if source == nil || source.Annotations[v1alpha1.CatalogPackageAnnotation] != name || source.Annotations[v1alpha1.InstalledBundleAnnotation] == "" {
		return nil
	}
	found := &v1alpha1.InstalledBundle{
		Bundle:  source.Annotations[v1alpha1.InstalledBundleAnnotation],
		Version: source.Annotations[v1alpha1.InstalledVersionAnnotation],
		Image:   pinned(source.Annotations[v1alpha1.InstalledImageAnnotation]),
	}
	if catalog := source.Annotations[v1alpha1.InstalledCatalogAnnotation]; isCatalog(catalog) {
		found.Catalog = catalog
	}
	return found
}

// isCatalog tells whether a text is the namespace and name of a BundleCatalog.
func isCatalog(text string) bool {
	namespace, name, found := strings.Cut(text, "/")
	return found && len(validation.IsDNS1123Label(namespace)) == 0 && len(name) <= validation.DNS1123LabelMaxLength && len(validation.IsDNS1123Subdomain(name)) == 0
}

// ownedSource is the BundleSource that the deployment keeps; nil if there is none.
func (st *Stage) ownedSource(ctx context.Context, in *Input) (*v1alpha1.BundleSource, error) {
	var source v1alpha1.BundleSource
	err := st.Reader.Get(ctx, in.Key(), &source)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading bundlesource %s: %w", in.Key(), err)
	case !metav1.IsControlledBy(&source, in.Object):
		return nil, nil
	}
	return &source, nil
}
