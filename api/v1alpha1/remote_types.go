// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ClusterReference names another cluster: at most one of its fields is set.
type ClusterReference struct {
	// KubeConfig names another cluster to install on, by a kubeconfig in a Secret.
	// +optional
	KubeConfig KubeConfigReference `json:"kubeConfig,omitzero"`

	// ClusterProfileRef names a ClusterProfile, of the API group multicluster.x-k8s.io, in this
	// namespace. It is read as the ServiceAccount of spec.serviceAccountName, which needs
	// permission to get it and the Secret with the credentials.
	// +optional
	ClusterProfileRef *ClusterProfileReference `json:"clusterProfileRef,omitempty"`
}

// KubeConfigReference names a kubeconfig. It has the form of the field of the same name of Flux, without the
// configMapRef: what that describes would have the controller log in to a cloud as itself.
type KubeConfigReference struct {
	// SecretRef names a Secret of this namespace that holds a kubeconfig. It is read as
	// the ServiceAccount of spec.serviceAccountName, which needs permission to get it, and read
	// again at each reconcile, so that a changed kubeconfig takes effect at once.
	// +required
	SecretRef KubeConfigSecretReference `json:"secretRef"`
}

// ClusterProfileReference names a ClusterProfile, and one of its access providers.
//
// The server and its certificate authority are those of the access provider. The credentials are in a Secret of the
// same namespace, which the extension client.authentication.k8s.io/exec of the provider names: with name, key and
// perhaps context, a kubeconfig, of which the user counts; with clusterName, the Secret of that name with the key
// token. No program is executed, and the same is refused as in a kubeconfig.
type ClusterProfileReference struct {
	// Name of the ClusterProfile.
	// +required
	Name ObjectName `json:"name"`

	// AccessProvider is the name of one of status.accessProviders; the first one that can be used if left out.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	AccessProvider string `json:"accessProvider,omitempty"`
}

// KubeConfigSecretReference names a Secret with a kubeconfig, and the key in it.
//
// Of the kubeconfig only the current context counts. All that it needs has to be in it: a server with https,
// certificates and keys as data, a token or a client certificate. Commands (exec), auth-provider, names of files,
// proxy-url, insecure-skip-tls-verify and impersonation are refused; so are servers on loopback, link-local and
// metadata addresses and the cluster that the controller runs in, unless its flags permit them.
type KubeConfigSecretReference struct {
	// Name of the Secret.
	// +required
	Name ObjectName `json:"name"`

	// Key of the Secret's data that holds the kubeconfig; value, or else value.yaml, if left out.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}
