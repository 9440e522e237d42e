// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BundleCatalogSpec says where a file-based catalog (FBC) comes from. It is fetched and verified as the content of a
// BundleSource is.
type BundleCatalogSpec struct {
	// Interval at which a reference that can move (a tag, a range, a branch, a URL without digest) is resolved again,
	// and a ConfigMap is read again. A reference that cannot move (a digest, a commit) is not polled. Up to a tenth is
	// subtracted, so that catalogs spread out.
	// +optional
	// +kubebuilder:default="10m"
	Interval Duration `json:"interval,omitzero"`

	// Timeout bounds resolving, downloading, unpacking and indexing together.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) <= duration('1h')",message="must be at most 1h"
	Timeout Duration `json:"timeout,omitzero"`

	// Suspend stops resolving and fetching. What is served stays served.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ServiceAccountName is a ServiceAccount of this namespace. Its imagePullSecrets are used for the registry of an
	// image, beside the Secret that the image names: the first 20 of them. Nothing else of it is used.
	// +optional
	ServiceAccountName ServiceAccountName `json:"serviceAccountName,omitempty"`

	// Source is the place that the catalog comes from.
	// +required
	Source CatalogSource `json:"source"`

	// Path is the folder or file of the catalog in the content. Without it, that is the folder in
	// the label operators.operatorframework.io.index.configs.v1 of an image, and else
	// everything. Of an image, only this folder is unpacked.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_-])?(/[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_-])?)*)?$')",message="must be a relative path such as catalog/configs: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'"
	Path string `json:"path,omitempty"`

	// Priority decides between catalogs that offer the same package: the highest one wins, as in OLM v1.
	// +optional
	Priority int32 `json:"priority,omitempty"`
}

// CatalogSource is the place that a catalog comes from: exactly one of its fields is set.
//
// +kubebuilder:validation:ExactlyOneOf=image;git;http;configMap
type CatalogSource struct {
	// Image takes the files of a container image or OCI artifact.
	// +optional
	Image *ImageSource `json:"image,omitempty"`

	// Git takes the files of a commit in a Git repository.
	// +optional
	Git *GitSource `json:"git,omitempty"`

	// HTTP takes the files of an archive.
	// +optional
	HTTP *HTTPSource `json:"http,omitempty"`

	// ConfigMap takes the keys of data and binaryData of a ConfigMap in this namespace as
	// files. It is read at each interval.
	// +optional
	ConfigMap *LocalReference `json:"configMap,omitempty"`
}

// BundleCatalogStatus is what the source controller last saw, and what it serves.
type BundleCatalogStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about; -1 before the first reconcile.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions follow kstatus: Ready, Reconciling, Stalled, and beside them SourceVerified,
	// FetchFailed and StorageOperationFailed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Content is the catalog that is served.
	// +optional
	Content *CatalogContent `json:"content,omitempty"`

	// Problems are what is wrong in the catalog that is served, at most 20. A package that cannot
	// be read is left out; the others are not affected. Channels with several heads, or none, are
	// named as well: which of their bundles is the newest one is not certain.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Problems []string `json:"problems,omitempty"`

	// Resolved says what the reference of the source resolved to and who signed that.
	// +optional
	// +listType=map
	// +listMapKey=destination
	Resolved []ResolvedSource `json:"resolved,omitempty"`

	// SourcesDigest identifies the source and the path of the spec that Content was made from,
	// so that a change of the spec is told from a change upstream.
	// +optional
	SourcesDigest string `json:"sourcesDigest,omitempty"`

	// URLs say where the catalog is served.
	// +optional
	URLs *CatalogURLs `json:"urls,omitempty"`

	// LastHandledReconcileAt is the value of the annotation reconcile.fluxcd.io/requestedAt that was handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
}

// CatalogContent identifies what is served of a catalog.
type CatalogContent struct {
	// Digest of all blobs of the catalog, one a line with sorted fields: equal blobs in equal order
	// have an equal digest, in whatever files and formats they are written.
	// +required
	Digest string `json:"digest"`

	// Packages that can be used. Those in problems that are left out do not count.
	// +required
	Packages int32 `json:"packages"`

	// Bundles of all packages.
	// +required
	Bundles int32 `json:"bundles"`

	// Bytes of all blobs.
	// +required
	Bytes int64 `json:"bytes"`

	// LastUpdateTime is when this content was stored.
	// +required
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
}

// CatalogURLs are the addresses of a catalog.
type CatalogURLs struct {
	// Base is the address below which the catalog is served: api/v1/all has all blobs, api/v1/metas those with a
	// schema, package or name, as catalogd of OLM v1 serves them, and api/v1/packages has a line about each package.
	// +required
	Base string `json:"base"`
}

// BundleCatalog is a file-based catalog, the format of the Operator Lifecycle Manager, from which bundles are found
// by package, channel and version. The source controller fetches, verifies, indexes and serves it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=satchel,shortName=bcat
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Packages",type=integer,JSONPath=`.status.content.packages`
// +kubebuilder:printcolumn:name="Bundles",type=integer,JSONPath=`.status.content.bundles`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Digest",type=string,JSONPath=`.status.content.digest`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name must have at most 63 characters"
type BundleCatalog struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says where the catalog comes from.
	// +required
	Spec BundleCatalogSpec `json:"spec"`

	// Status is written by the source controller.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status BundleCatalogStatus `json:"status,omitempty"`
}

// BundleCatalogList is a list of BundleCatalogs.
//
// +kubebuilder:object:root=true
type BundleCatalogList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items of the list.
	Items []BundleCatalog `json:"items"`
}

// GetConditions returns the conditions of the status.
func (in *BundleCatalog) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (in *BundleCatalog) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}
