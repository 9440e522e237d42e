// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BundleImagePolicySpec says how the images with a prefix of their names are fetched.
type BundleImagePolicySpec struct {
	// Images are the rules, each for the images with a prefix. The rule with the longest prefix of an image counts,
	// and no other one. The rules of all BundleImagePolicies of a namespace are one list: several with the same prefix
	// count together, in the order of the names of their BundleImagePolicies.
	// +required
	// +listType=map
	// +listMapKey=prefix
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="[(self.map(s, s.?secretRef.?name.orValue('')) + self.map(s, s.?certSecretRef.?name.orValue('')) + self.map(s, s.?proxySecretRef.?name.orValue('')) + self.map(s, s.?verify.?secretRef.?name.orValue('')) + self.map(s, s.?verify.?trustedRootSecretRef.?name.orValue(''))).filter(n, n != '')].map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).all(l, l.size() == 0)",message="the rules may name at most 20 distinct Secrets: use one Secret for several prefixes, or divide the rules among several BundleImagePolicies"
	Images []ImageRule `json:"images"`
}

// ImageSourceMode says whether the registry in the name of an image is contacted.
type ImageSourceMode string

// The modes of ImageRule.Source.
const (
	// ImageSourceFallback contacts it when no mirror has the image.
	ImageSourceFallback ImageSourceMode = "Fallback"
	// ImageSourceNever never contacts it.
	ImageSourceNever ImageSourceMode = "Never"
)

// AllTenants is the item of ImageRule.Tenants that stands for all namespaces.
const AllTenants = "All"

// ImageRule says how the images with a prefix are fetched.
//
// +kubebuilder:validation:XValidation:rule="!has(self.deny) || !self.deny || !(has(self.mirrors) || has(self.secretRef) || has(self.certSecretRef) || has(self.proxySecretRef) || has(self.verify))",message="an image that is denied is never fetched: remove mirrors, the Secrets and verify, or deny"
// +kubebuilder:validation:XValidation:rule="!has(self.source) || self.source != 'Never' || (has(self.mirrors) && self.mirrors.size() > 0)",message="source Never needs mirrors, or there is no place to fetch from: add mirrors, or use deny"
// +kubebuilder:validation:XValidation:rule="self.prefix.size() > 0 || !(has(self.mirrors) || has(self.secretRef))",message="mirrors and secretRef are for the images of one registry: give a prefix that begins with its host"
// +kubebuilder:validation:XValidation:rule="(has(self.mirrors) && self.mirrors.size() > 0) || !((has(self.tags) && self.tags) || (has(self.insecure) && self.insecure))",message="tags and insecure are about mirrors: add mirrors"
// +kubebuilder:validation:XValidation:rule="!has(self.tenants) || has(self.secretRef) || has(self.certSecretRef)",message="tenants says who may use the login in secretRef or certSecretRef: add one, or remove tenants"
type ImageRule struct {
	// Prefix of the names of images: a host, with its port if that is not 443 or 80, and any number of whole path
	// components: quay.io/org is a prefix of quay.io/org/app and not of quay.io/organization/app. Names are compared
	// in their full form: nginx is docker.io/library/nginx. The empty prefix is one of all images.
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([^/]*[.][^/]*|localhost|[[][^/]*[]]):(80|443)(/|$)')",message="must not have a default port, 80 or 443: write the host alone"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(index[.]docker[.]io|registry-1[.]docker[.]io|registry[.]hub[.]docker[.]com)(/|$)')",message="is another name of Docker Hub: write docker.io"
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^([a-z0-9-]+([.][a-z0-9-]+)+|localhost|[a-z0-9-]+([.][a-z0-9-]+)*:[1-9][0-9]{0,4}|[[][0-9a-f:.]+[]](:[1-9][0-9]{0,4})?|[a-z0-9-]+([.][a-z0-9-]+)+:[1-9][0-9]{0,4})(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)*$')",message="must begin with the host of a registry in lower case, and may go on with whole path components, without a tag: quay.io, quay.io/org or docker.io/library/nginx"
	Prefix string `json:"prefix"`

	// Mirrors are tried in order before the registry in the image's name. Each stands in the place of the prefix: with
	// the prefix quay.io/org and the mirror mirror.example.org/quay, quay.io/org/app is looked for at
	// mirror.example.org/quay/app. An image that is named by a digest, or was resolved to one, is the same wherever it
	// comes from; signatures are looked for at the mirrors as well, and checked for the original name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([a-z0-9-]+([.][a-z0-9-]+)+|localhost|[a-z0-9-]+([.][a-z0-9-]+)*:[1-9][0-9]{0,4}|[[][0-9a-f:.]+[]](:[1-9][0-9]{0,4})?|[a-z0-9-]+([.][a-z0-9-]+)+:[1-9][0-9]{0,4})(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)*$')",message="must begin with the host of a registry in lower case, and may go on with whole path components, without a tag: mirror.example.org:5000/quay"
	Mirrors []string `json:"mirrors,omitempty"`

	// Source says whether the registry in the image's name is contacted: Fallback, when no
	// mirror has the image, or Never. Without it, it is Fallback. With Never in the shared
	// namespace only the mirrors that are named there are used.
	// +optional
	// +kubebuilder:validation:Enum=Fallback;Never
	Source ImageSourceMode `json:"source,omitempty"`

	// Tags asks the mirrors also what a tag or a range of versions stands for, and so lets them decide which content
	// that is. Without it they are asked for digests only, and tags are resolved by the registry in the image's name.
	// +optional
	Tags bool `json:"tags,omitempty"`

	// Insecure reaches the mirrors over plain HTTP. It takes effect only for hosts that the
	// source controller's --insecure-hosts flag lists.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// SecretRef names a Secret of the type kubernetes.io/dockerconfigjson. Of its logins, those for the prefix and the
	// mirrors of this rule are used, and sent nowhere else. The secretRef of an image takes precedence over it, and it
	// takes precedence over the pull secrets of a ServiceAccount.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// CertSecretRef names a Secret with ca.crt, authorities that are trusted for the mirrors
	// beside the system's, or tls.crt and tls.key, a certificate that is shown to them, or both. The
	// registry in the image's name is reached with it unless the image has a certSecretRef.
	// +optional
	CertSecretRef *LocalReference `json:"certSecretRef,omitempty"`

	// ProxySecretRef names a Secret with the address of a proxy (http://host:port), and username and password where
	// the proxy wants them, through which the mirrors are reached. The registry in the image's name is reached through
	// it unless the image has a proxySecretRef.
	// +optional
	ProxySecretRef *LocalReference `json:"proxySecretRef,omitempty"`

	// Verify demands a signature of the images, beside the one that a source demands: each demand has to
	// be met. When the keys change, what is published has to be accepted by the new ones.
	// +optional
	Verify *ImageVerification `json:"verify,omitempty"`

	// Tenants are the namespaces with images that are fetched with the login in secretRef and
	// the client certificate in certSecretRef, or All. It counts only in the shared
	// namespace (the flag --shared-catalog-namespace): there, these two are used for no namespace that
	// is not listed, because everyone who may create a BundleSource in a listed namespace can read the images.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self == 'All' || self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="must be the name of a namespace, or All"
	Tenants []string `json:"tenants,omitempty"`

	// Deny refuses these images. What was published of them is withdrawn; deployments that run it keep it.
	// +optional
	Deny bool `json:"deny,omitempty"`
}

// BundleImagePolicy says, by prefixes of their names, from which mirrors and with which logins the images of
// BundleSources and BundleCatalogs are fetched, which signatures they need, and which images are refused. It counts
// in its own namespace; in the shared namespace, which the flag --shared-catalog-namespace of the source controller
// names, it counts for all namespaces, and the policies of another namespace can add to it and never loosen it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=satchel,shortName=bimg
// +kubebuilder:printcolumn:name="Prefixes",type=string,JSONPath=`.spec.images[*].prefix`
// +kubebuilder:printcolumn:name="Mirrors",type=string,JSONPath=`.spec.images[*].mirrors[*]`,priority=1
// +kubebuilder:printcolumn:name="Denied",type=string,JSONPath=`.spec.images[?(@.deny==true)].prefix`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BundleImagePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the rules.
	// +required
	Spec BundleImagePolicySpec `json:"spec"`
}

// BundleImagePolicyList is a list of BundleImagePolicies.
//
// +kubebuilder:object:root=true
type BundleImagePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items of the list.
	Items []BundleImagePolicy `json:"items"`
}
