// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// HealthCheck names an object that has to be healthy.
type HealthCheck struct {
	// APIVersion of the object, such as apps/v1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+$')",message="must be group/version, or a version of the core group, such as apps/v1 or v1"
	APIVersion string `json:"apiVersion"`

	// Kind of the object, such as Deployment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="must be a kind as manifests spell it, such as Deployment"
	Kind string `json:"kind"`

	// Name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches('[/%]') && self != '.' && self != '..'",message="must be the name of an object, without '/' and '%'"
	Name string `json:"name"`

	// Namespace of the object. The install namespace if left out, where the kind
	// has one. The ServiceAccount of spec.serviceAccountName needs permission to get it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$')",message="must be the name of a namespace: lower-case letters, digits and '-'"
	Namespace string `json:"namespace,omitempty"`
}

// HealthExpression computes the health of the objects of a kind by CEL expressions. Their variables are the top-level
// fields of the object, such as metadata and status. An object is in progress if status.observedGeneration differs
// from metadata.generation; else the first of inProgress, failed and current that is true counts, and if none is
// true, the object is in progress.
type HealthExpression struct {
	// APIVersion of the objects, such as example.com/v1. Objects of the kind in another version keep the usual rules.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+$')",message="must be group/version, or a version of the core group, such as apps/v1 or v1"
	APIVersion string `json:"apiVersion"`

	// Kind of the objects, such as Database.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="must be a kind as manifests spell it, such as Database"
	Kind string `json:"kind"`

	// InProgress is true while an object is not ready yet. It is evaluated before failed and current.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	InProgress string `json:"inProgress,omitempty"`

	// Failed is true when an object does not become healthy without a change. It is evaluated before current.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Failed string `json:"failed,omitempty"`

	// Current is true when an object is healthy. An object for which no expression is true, or
	// one cannot be evaluated, is in progress.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Current string `json:"current"`
}
