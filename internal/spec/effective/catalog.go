// SPDX-License-Identifier: Apache-2.0

package effective

import (
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// OwnsSource tells whether the controller keeps the BundleSource of the deployment's name for it.
func OwnsSource(d *v1alpha1.BundleDeployment) bool {
	return d.Spec.Source != nil || d.Spec.Catalog != nil
}

// CatalogBundleSource is the spec of the BundleSource with the image of a bundle of a catalog. The durations are the defaults of the API.
func CatalogBundleSource(how *v1alpha1.CatalogImage, reference string) v1alpha1.BundleSourceSpec {
	image := v1alpha1.ImageSource{Reference: reference}
	spec := v1alpha1.BundleSourceSpec{Interval: v1alpha1.Duration{Duration: 10 * time.Minute}, Timeout: v1alpha1.Duration{Duration: time.Minute}}
	if how != nil {
		image.Platform = how.Platform
		image.Insecure = how.Insecure
		image.Provider = how.Provider
		image.SecretRef = how.SecretRef.DeepCopy()
		image.CertSecretRef = how.CertSecretRef.DeepCopy()
		image.ProxySecretRef = how.ProxySecretRef.DeepCopy()
		image.Verify = how.Verify.DeepCopy()
		spec.ServiceAccountName = how.ServiceAccountName
	}
	spec.Sources = []v1alpha1.Source{{Image: &image}}
	return spec
}
