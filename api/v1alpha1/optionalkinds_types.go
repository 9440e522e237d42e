// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// OptionalKind is a kind that the cluster need not have.
type OptionalKind struct {
	// Group of the kind, such as monitoring.coreos.com.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an API group, without a version: lower-case letters, digits, '-' and '.'"
	Group string `json:"group"`

	// Kind in the group, such as ServiceMonitor.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="must be a kind as manifests spell it, such as ServiceMonitor"
	Kind string `json:"kind"`
}
