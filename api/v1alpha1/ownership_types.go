// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// CollisionProtection says which objects that exist already, and that this
// deployment did not create, it takes over.
// +kubebuilder:validation:Enum=Prevent;IfUnmanaged;None
type CollisionProtection string

// Kinds of protection.
const (
	// CollisionPrevent takes nothing over but what is marked as orphaned.
	CollisionPrevent CollisionProtection = "Prevent"
	// CollisionIfUnmanaged takes over what no tool and no controller owns.
	CollisionIfUnmanaged CollisionProtection = "IfUnmanaged"
	// CollisionNone takes over everything but what another BundleDeployment owns.
	CollisionNone CollisionProtection = "None"
)

// DeletionPolicy says what becomes of objects that are not wanted any more.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

// Policies.
const (
	// DeletionDelete deletes them.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan leaves them, marked, to whoever takes them up.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// Recreate says what becomes of an object whose change the API server refuses because
// a field of it cannot change.
// +kubebuilder:validation:Enum=Never;OnImmutableChange
type Recreate string

// Ways to deal with fields that cannot change.
const (
	// RecreateNever reports them.
	RecreateNever Recreate = "Never"
	// RecreateOnImmutableChange deletes the object and creates it anew.
	RecreateOnImmutableChange Recreate = "OnImmutableChange"
)

// DeletesDefinitions tells whether CustomResourceDefinitions may be deleted.
func (in *BundleDeploymentSpec) DeletesDefinitions() bool {
	return in.CRDs != nil && in.CRDs.DeletionPolicy == DeletionDelete
}

// CollisionProtectionOrDefault is which existing objects of others are taken over.
func (in *BundleDeploymentSpec) CollisionProtectionOrDefault() CollisionProtection {
	if in.CollisionProtection == "" {
		return CollisionPrevent
	}
	return in.CollisionProtection
}
