// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Dependency is another BundleDeployment that has to be ready first.
type Dependency struct {
	// Name of a BundleDeployment in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the bare name of a BundleDeployment in this namespace: lower-case letters, digits, '-' and '.'"
	Name string `json:"name"`

	// ReadyExpr is a CEL expression that has to be true as well, over dep, which is
	// the other BundleDeployment, and self, which is this one: such as
	// dep.status.applied.revision == self.metadata.annotations["example.com/revision"].
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ReadyExpr string `json:"readyExpr,omitempty"`
}
