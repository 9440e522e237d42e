// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpgradePolicy says whether upgrades follow the edges of the catalog.
// +kubebuilder:validation:Enum=CatalogProvided;SelfCertified
type UpgradePolicy string

// Upgrade policies, with the names and the meaning of OLM v1.
const (
	// UpgradeCatalogProvided follows the edges of the catalog: replaces, skips and skipRange.
	UpgradeCatalogProvided UpgradePolicy = "CatalogProvided"
	// UpgradeSelfCertified goes to any version that the query allows.
	UpgradeSelfCertified UpgradePolicy = "SelfCertified"
)

// DowngradePolicy says whether a lower version may be installed.
// +kubebuilder:validation:Enum=Refuse;Allow
type DowngradePolicy string

// Policies for downgrades.
const (
	// DowngradeRefuse leaves out versions lower than the installed one.
	DowngradeRefuse DowngradePolicy = "Refuse"
	// DowngradeAllow permits them.
	DowngradeAllow DowngradePolicy = "Allow"
)

// CatalogPackage says which bundle of which package is installed, by the rules of OLM v1. It is resolved again when this
// field, the package in a catalog or what is installed changes, or when a reconcile is requested.
//
// +kubebuilder:validation:AtMostOneOf=catalogs;catalogSelector
// +kubebuilder:validation:XValidation:rule="self.__package__ == oldSelf.__package__",message="package cannot change; create another BundleDeployment instead"
// +kubebuilder:validation:XValidation:rule="!has(self.downgrade) || self.downgrade != 'Allow' || (has(self.upgradePolicy) && self.upgradePolicy == 'SelfCertified')",message="downgrade: Allow needs upgradePolicy: SelfCertified; a lower version to which an edge of the catalog leads is always possible"
type CatalogPackage struct {
	// Package is the name of the package in the catalogs. It cannot change.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a package: lower-case letters, digits, '-' and '.'"
	Package string `json:"package"`

	// Version is a range such as ">=1.2.0 <2.0.0" or "~1.2"; a complete version such as 1.2.3 is exactly that one. A
	// range contains prereleases only if it names one. Without it all versions are candidates, prereleases too.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Version string `json:"version,omitempty"`

	// Channels are those that candidates and upgrade edges are taken from. Without them
	// all bundles of the package are candidates.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Channels []string `json:"channels,omitempty"`

	// Catalogs are the names of the BundleCatalogs to search. Those of this namespace and of the
	// controller's --shared-catalog-namespace are found; of two with one name, that of this
	// namespace. Without catalogs and catalogSelector all of them are searched.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Catalogs []string `json:"catalogs,omitempty"`

	// CatalogSelector selects the BundleCatalogs to search by their labels.
	// +optional
	CatalogSelector *metav1.LabelSelector `json:"catalogSelector,omitempty"`

	// UpgradePolicy CatalogProvided, the default, goes only to a bundle that replaces or skips the installed one in
	// the catalog, one upgrade after the other. SelfCertified goes to any version that the other fields allow.
	// +optional
	// +kubebuilder:default=CatalogProvided
	UpgradePolicy UpgradePolicy `json:"upgradePolicy,omitempty"`

	// Downgrade Allow permits versions lower than the installed one with upgradePolicy
	// SelfCertified. Refuse is the default.
	// +optional
	// +kubebuilder:default=Refuse
	Downgrade DowngradePolicy `json:"downgrade,omitempty"`

	// Image says how the image of the bundle is pulled and verified.
	// +optional
	Image *CatalogImage `json:"image,omitempty"`

	// Lock is a bundle that was resolved before, such as in Git: nothing else is installed. A
	// catalog has to list it with this image, and it has to be a permitted upgrade.
	// +optional
	Lock *CatalogLock `json:"lock,omitempty"`

	// Installed is the bundle from which upgrades start if the status does not say it: after a
	// migration, or a restore from a backup.
	// +optional
	Installed *CatalogInstalled `json:"installed,omitempty"`
}

// CatalogImage says how the image of a bundle is pulled and verified. Its fields are those of an image of a BundleSource.
type CatalogImage struct {
	// Platform chooses the child of a multi-platform index, as os/arch or os/arch/variant.
	// Without it linux/amd64 is taken, or the only image of the index.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+/[a-z0-9_]+(/[a-z0-9]+)?$')",message="must be os/arch or os/arch/variant, such as linux/amd64"
	Platform string `json:"platform,omitempty"`

	// Insecure reaches the registry over plain HTTP. It takes effect only for
	// hosts that the source controller's --insecure-hosts flag lists.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// Provider logs in to the registry of a cloud (aws, azure, gcp) with the source controller's own identity there,
	// which the controller's flag --cloud-logins has to permit.
	// +optional
	// +kubebuilder:validation:Enum=generic;aws;azure;gcp
	Provider string `json:"provider,omitempty"`

	// SecretRef names a Secret of the type kubernetes.io/dockerconfigjson in this namespace with
	// the login to the registry. Secrets of catalogs are never used for bundles.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// CertSecretRef names a Secret with ca.crt, authorities that are trusted beside the
	// system's, or tls.crt and tls.key, a certificate that is shown to the registry, or both.
	// +optional
	CertSecretRef *LocalReference `json:"certSecretRef,omitempty"`

	// ProxySecretRef names a Secret with the address of a proxy (http://host:port), and
	// username and password where the proxy wants them.
	// +optional
	ProxySecretRef *LocalReference `json:"proxySecretRef,omitempty"`

	// ServiceAccountName is a ServiceAccount of this namespace. Its imagePullSecrets are used for
	// the registry, beside secretRef.
	// +optional
	ServiceAccountName ServiceAccountName `json:"serviceAccountName,omitempty"`

	// Verify demands a signature of the image. Without one that is accepted nothing is fetched.
	// +optional
	Verify *ImageVerification `json:"verify,omitempty"`
}

// CatalogLock is a resolved bundle.
type CatalogLock struct {
	// Bundle is the name of the bundle.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Bundle string `json:"bundle"`

	// Image of the bundle, with its digest. If the catalog names a tag, the repository has to be the same.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[][A-Za-z0-9._:/-]+@sha256:[0-9a-f]{64}$')",message="must be a repository with a digest, such as quay.io/org/bundle@sha256:..."
	Image string `json:"image"`
}

// CatalogInstalled is a bundle that is installed.
type CatalogInstalled struct {
	// Bundle is the name of the bundle.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Bundle string `json:"bundle"`

	// Version of the bundle, three numbers such as 1.2.3, with its release, if it has one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version"`
}

// CatalogPackageStatus is what a package of catalogs resolved to.
type CatalogPackageStatus struct {
	// Resolved is the bundle that this deployment goes to, or has reached.
	// +optional
	Resolved *ResolvedBundle `json:"resolved,omitempty"`

	// Installed is the bundle of the plan that was executed last. Upgrades start from it.
	// +optional
	Installed *InstalledBundle `json:"installed,omitempty"`

	// Newest is the newest bundle of the package, if another one is installed.
	// +optional
	Newest *NewestBundle `json:"newest,omitempty"`

	// Deprecations of the package, the channels and the bundle, as the catalog says.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Deprecations []CatalogDeprecation `json:"deprecations,omitempty"`
}

// ResolvedBundle is a bundle of a catalog, pinned by digest.
type ResolvedBundle struct {
	// Bundle is the name of the bundle.
	// +required
	Bundle string `json:"bundle"`

	// Version of the bundle, without the release; empty if it is a lock, and no catalog could be read.
	// +optional
	Version string `json:"version,omitempty"`

	// Release is the release in the build metadata of the version.
	// +optional
	Release string `json:"release,omitempty"`

	// Reference is the image as the catalog names it.
	// +required
	Reference string `json:"reference"`

	// Image is the image with its digest. It is empty until the digest of a tag is known.
	// +optional
	Image string `json:"image,omitempty"`

	// Channels with the bundle, at most 20.
	// +optional
	// +listType=atomic
	Channels []string `json:"channels,omitempty"`

	// Catalog is the BundleCatalog that was chosen.
	// +optional
	Catalog string `json:"catalog,omitempty"`

	// CatalogNamespace is its namespace, if that is the shared one.
	// +optional
	CatalogNamespace string `json:"catalogNamespace,omitempty"`

	// CatalogDigest is the content of the catalog.
	// +optional
	CatalogDigest string `json:"catalogDigest,omitempty"`

	// Query is the digest of spec.catalog for which it was resolved.
	// +required
	Query string `json:"query"`

	// Input is the digest of all that was looked at. As long as it is the same, nothing is resolved again.
	// +required
	Input string `json:"input"`
}

// InstalledBundle is a bundle with an executed plan.
type InstalledBundle struct {
	// Bundle is the name of the bundle.
	// +required
	Bundle string `json:"bundle"`

	// Version of the bundle, with its release.
	// +optional
	Version string `json:"version,omitempty"`

	// Image with its digest.
	// +optional
	Image string `json:"image,omitempty"`

	// Catalog that offered it, as namespace/name.
	// +optional
	Catalog string `json:"catalog,omitempty"`

	// Channels with the bundle, at most 20.
	// +optional
	// +listType=atomic
	Channels []string `json:"channels,omitempty"`

	// Revision of the artifact with its content.
	// +optional
	Revision string `json:"revision,omitempty"`
}

// NewestBundle is the newest bundle of a package, which is not the one that was chosen.
type NewestBundle struct {
	// Bundle is the name of the bundle.
	// +required
	Bundle string `json:"bundle"`

	// Version of the bundle.
	// +optional
	Version string `json:"version,omitempty"`

	// Because says why it was not chosen.
	// +required
	Because string `json:"because"`
}

// CatalogDeprecation is what a catalog says about something that should not be used any more.
type CatalogDeprecation struct {
	// Scope is Package, Channel or Bundle.
	// +required
	// +kubebuilder:validation:Enum=Package;Channel;Bundle
	Scope string `json:"scope"`

	// Name of the channel or bundle.
	// +optional
	Name string `json:"name,omitempty"`

	// Message of the catalog's author.
	// +optional
	Message string `json:"message,omitempty"`
}
