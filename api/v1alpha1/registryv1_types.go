// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// RegistryV1Options are the options of the format registry+v1.
type RegistryV1Options struct {
	// WatchNamespaces are the namespaces that the operator watches. Empty means all namespaces
	// if the bundle supports that, otherwise the only valid value, if there is one.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace: lower-case letters, digits and '-'"
	WatchNamespaces []string `json:"watchNamespaces,omitempty"`

	// DeploymentConfig adjusts all Deployments of the bundle and their containers, as the config of a Subscription
	// does in OLM: env, envFrom, volumes, volumeMounts, tolerations, resources, nodeSelector, affinity and
	// annotations, each as in a Pod. Init containers stay as they are. It is free-form here and checked when the
	// bundle is converted: unknown fields and wrong types are refused with the path of the field.
	// +optional
	// +kubebuilder:validation:Type=object
	DeploymentConfig *apiextensionsv1.JSON `json:"deploymentConfig,omitempty"`

	// CertificateProvider issues the certificates of the bundle's webhooks. With self-signed,
	// the default, the controller keeps a certificate authority and its certificates in
	// Secrets and renews them; cert-manager and service-ca must be installed.
	// +optional
	// +kubebuilder:default=self-signed
	// +kubebuilder:validation:Enum=self-signed;cert-manager;service-ca
	CertificateProvider string `json:"certificateProvider,omitempty"`

	// Requirements says what happens if the cluster does not meet the requirements of the bundle: CRDs and APIs of
	// others, packages, a version of Kubernetes. Enforce, the default, refuses the plan and names each; Warn installs
	// with a warning for each; None does not check.
	// +optional
	// +kubebuilder:default=Enforce
	// +kubebuilder:validation:Enum=Enforce;Warn;None
	Requirements Enforcement `json:"requirements,omitempty"`

	// OperatorConditions sets the variable OPERATOR_CONDITION_NAME in all
	// containers, as OLM v0 does, for operators that do not start without it.
	// +optional
	OperatorConditions bool `json:"operatorConditions,omitempty"`

	// APIClusterRoles adds ClusterRoles to administer, edit and view the custom resources of the bundle, as OLM v0
	// does; they aggregate to the ClusterRoles admin, edit and view.
	// +optional
	APIClusterRoles bool `json:"apiClusterRoles,omitempty"`

	// PodAnnotations chooses which annotations of the ClusterServiceVersion the operator's Pods carry: All, the
	// default, as OLM does, so that any change of them restarts the operator; Required are only olm.targetNamespaces
	// and olm.operatorNamespace, which operators read.
	// +optional
	// +kubebuilder:default=All
	// +kubebuilder:validation:Enum=All;Required
	PodAnnotations string `json:"podAnnotations,omitempty"`

	// IncludeCustomResources keeps custom resources of the bundle that only share their kind's
	// name with a kind that bundles may contain, such as the Role of a cloud's API. Otherwise
	// they are omitted with a warning: mostly they are samples.
	// +optional
	IncludeCustomResources bool `json:"includeCustomResources,omitempty"`

	// DuplicateKeys says what happens to a mapping of a manifest that has a key twice with different values. Refuse,
	// the default, refuses the bundle; with Last the last value counts, as in OLM, with a warning for each. In labels
	// and annotations the last value always counts.
	// +optional
	// +kubebuilder:default=Refuse
	// +kubebuilder:validation:Enum=Refuse;Last
	DuplicateKeys string `json:"duplicateKeys,omitempty"`
}

// Enforcement says what happens when a rule is violated.
type Enforcement string

// Ways to enforce a rule.
const (
	// Enforce refuses it.
	Enforce Enforcement = "Enforce"
	// Warn lets it pass with a warning.
	Warn Enforcement = "Warn"
	// EnforcementNone does not check.
	EnforcementNone Enforcement = "None"
)

// CRDOptions say how CustomResourceDefinitions of a bundle are treated.
type CRDOptions struct {
	// UpgradeSafety says what happens to a change of a CustomResourceDefinition that could break existing custom
	// resources: that removes a stored version or a field, or narrows a type. Enforce, the default, refuses the plan
	// with the offending paths; Warn applies it with a warning; None does not check. While no custom resource exists,
	// which the ServiceAccount has to be permitted to list in all namespaces, such a change is a warning.
	// +optional
	// +kubebuilder:default=Enforce
	// +kubebuilder:validation:Enum=Enforce;Warn;None
	UpgradeSafety Enforcement `json:"upgradeSafety,omitempty"`

	// UpgradeSafetyExemptions are CustomResourceDefinitions that are not checked, by their names such as
	// widgets.example.com. A bundle exempts one by the annotation satchel.dev/crd-upgrade-safety: None.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:MinLength=1
	UpgradeSafetyExemptions []string `json:"upgradeSafetyExemptions,omitempty"`

	// DeletionPolicy says what happens to CustomResourceDefinitions when they leave the bundle or the BundleDeployment
	// is deleted. Orphan, the default, keeps them. Delete deletes the custom resources that the bundle contains, and
	// then the CustomResourceDefinition; it is kept while other custom resources of it exist.
	// +optional
	// +kubebuilder:default=Orphan
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}
