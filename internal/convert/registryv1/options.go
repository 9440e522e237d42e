// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// CertificateProvider issues the serving certificates of webhooks.
type CertificateProvider string

// Providers of certificates.
const (
	// SelfSigned leaves the certificates to the caller that applies the objects; see Rendered.Certificates.
	SelfSigned  CertificateProvider = "self-signed"
	CertManager CertificateProvider = "cert-manager"
	ServiceCA   CertificateProvider = "service-ca"
)

// PodAnnotations chooses which annotations of the ClusterServiceVersion the operator's Pods carry.
type PodAnnotations string

// Choices of Pod annotations.
const (
	// AllAnnotations copies those of the ClusterServiceVersion, as OLM does; any change of them restarts the operator.
	AllAnnotations PodAnnotations = "All"
	// RequiredAnnotations are only the two that operators read: olm.targetNamespaces and olm.operatorNamespace.
	RequiredAnnotations PodAnnotations = "Required"
)

// Options choose among the ways in which a bundle can be rendered.
type Options struct {
	// InstallNamespace is where the operator runs. Required.
	InstallNamespace string
	// WatchNamespaces are what the operator watches; empty: all, or the one that the bundle's install modes leave.
	WatchNamespaces []string
	// CertificateProvider is required for bundles with webhooks.
	CertificateProvider CertificateProvider
	// DeploymentConfig adjusts all of the bundle's Deployments: a DeploymentConfig in JSON, as users wrote it. Empty for none.
	DeploymentConfig json.RawMessage
	// OperatorConditions sets OPERATOR_CONDITION_NAME in all containers, as OLM v0 does.
	OperatorConditions bool
	// APIClusterRoles adds ClusterRoles to administer, edit and view the custom resources of the bundle, as OLM v0 does.
	APIClusterRoles bool
	// PodAnnotations defaults to AllAnnotations.
	PodAnnotations PodAnnotations
	// IncludeCustomResources keeps custom resources that share their kind's name with an allowed kind.
	IncludeCustomResources bool
}

// DeploymentConfig changes the Deployments of a bundle as the config of an OLM Subscription does. Init containers stay as
// they are.
type DeploymentConfig struct {
	// Env replaces variables of the same name in all containers and adds the others; EnvFrom adds.
	Env     []corev1.EnvVar        `json:"env,omitempty"`
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// Volumes and VolumeMounts replace those of the same volume name and add the others.
	Volumes      []corev1.Volume      `json:"volumes,omitempty"`
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	// Tolerations adds those that are missing.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Resources replaces those of all containers.
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// NodeSelector replaces the bundle's.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity replaces the parts that are set; an empty part, or an empty affinity, removes what the bundle has.
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// Annotations are added to Deployments and Pods where the key is not there yet.
	Annotations map[string]string `json:"annotations,omitempty"`
}
