// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Finalizer is put on BundleDeployments, so that the objects they installed are deleted in order before they are.
const Finalizer = "satchel.dev/finalizer"

// OriginRevisionMetadata is the key of the metadata of an artifact under which Flux, and the ExternalArtifact of a
// BundleSource, have the origin revision.
const OriginRevisionMetadata = "org.opencontainers.image.revision"

// AbandonAnnotation on a BundleDeployment that is being deleted, with the value now, abandons a
// removal that fails: what is left is annotated as orphaned where that is possible, listed in
// an event and in the log, and the finalizer is removed. See RemovalBlockedCondition.
const AbandonAnnotation = "satchel.dev/abandon"

// Labels and annotations on the objects that a BundleDeployment applies.
const (
	// DeploymentLabel holds the name of the BundleDeployment that applied the object.
	DeploymentLabel = "satchel.dev/deployment"
	// NamespaceLabel holds the namespace of the BundleDeployment that applied the object.
	NamespaceLabel = "satchel.dev/namespace"
	// OrphanedAnnotation is on an object that a removal kept on purpose, such as a CustomResourceDefinition. The next
	// deployment that contains the object adopts it, whatever its CollisionProtection. Its value is the namespace and
	// name of the former owner.
	OrphanedAnnotation = "satchel.dev/orphaned"
	// PruneAnnotation with the value Disabled keeps the object when it leaves the bundle.
	PruneAnnotation = "satchel.dev/prune"
	// PruneTimingAnnotation is spec.prune.timing for one object.
	PruneTimingAnnotation = "satchel.dev/prune-timing"
	// DeletionPolicyAnnotation with the value Orphan keeps the object whatever becomes
	// of the bundle and of the BundleDeployment.
	DeletionPolicyAnnotation = "satchel.dev/deletion-policy"
)

// Kinds of this API group, as references and messages spell them.
const (
	// BundleSourceKind is the kind of BundleSource.
	BundleSourceKind = "BundleSource"
	// BundleDeploymentKind is the kind of BundleDeployment.
	BundleDeploymentKind = "BundleDeployment"
	// BundleApprovalKind is the kind of BundleApproval.
	BundleApprovalKind = "BundleApproval"
	// BundleRolloutKind is the kind of BundleRollout.
	BundleRolloutKind = "BundleRollout"
	// BundleCatalogKind is the kind of BundleCatalog.
	BundleCatalogKind = "BundleCatalog"
	// BundleImagePolicyKind is the kind of BundleImagePolicy.
	BundleImagePolicyKind = "BundleImagePolicy"
)

// CommandFieldManager is the field manager of what the command line creates and changes.
const CommandFieldManager = "satchel-cli"

// ServiceAccountName is the name of a ServiceAccount.
//
// It is an alias, so that Go code uses it as any string; the rules are those of every field of this type.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$')",message="must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'"
type ServiceAccountName = string

// ObjectName is the name of an object in the namespace of the object that holds it. It is an alias, as ServiceAccountName.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$')",message="must be the bare name of an object in this namespace: lower-case letters, digits, '-' and '.'"
type ObjectName = string

// LocalReference names an object in the namespace of the object that holds the
// reference. There is no way to name another namespace.
type LocalReference struct {
	// Name of the object.
	// +required
	Name ObjectName `json:"name"`
}
