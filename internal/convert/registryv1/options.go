// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"encoding/json"
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
	// LastKeys has the last one of keys with different values in one mapping count, with a warning; otherwise they are refused.
	LastKeys bool
	// RequirementsOptional: requirements are not enforced, so that what cannot be read of them is only warned of.
	RequirementsOptional bool
}
