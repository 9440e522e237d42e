// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// CollisionProtection says which existing objects, that this deployment did not create, it adopts.
// +kubebuilder:validation:Enum=Prevent;IfUnmanaged;None
type CollisionProtection string

// Kinds of protection.
const (
	// CollisionPrevent adopts only objects with OrphanedAnnotation.
	CollisionPrevent CollisionProtection = "Prevent"
	// CollisionIfUnmanaged adopts objects that no tool and no controller owns.
	CollisionIfUnmanaged CollisionProtection = "IfUnmanaged"
	// CollisionNone adopts all objects but those of another BundleDeployment.
	CollisionNone CollisionProtection = "None"
)

// DeletionPolicy says what becomes of objects that are not wanted any more.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

// Policies.
const (
	// DeletionDelete deletes them.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan keeps them with OrphanedAnnotation, so that another BundleDeployment can adopt them.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// Recreate says what happens when the API server refuses a change of an object because a field is immutable.
// +kubebuilder:validation:Enum=None;OnImmutableChange
type Recreate string

// Ways to deal with fields that cannot change.
const (
	// RecreateNone reports them.
	RecreateNone Recreate = "None"
	// RecreateOnImmutableChange deletes the object and creates it again.
	RecreateOnImmutableChange Recreate = "OnImmutableChange"
)
