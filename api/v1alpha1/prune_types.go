// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PruneTiming is when objects that left the bundle are deleted.
// +kubebuilder:validation:Enum=AfterHealthy;BeforeApply
type PruneTiming string

// Times to prune.
const (
	// PruneAfterHealthy deletes when the new revision is healthy.
	PruneAfterHealthy PruneTiming = "AfterHealthy"
	// PruneBeforeApply deletes, and waits until it is gone, before the new revision is applied.
	PruneBeforeApply PruneTiming = "BeforeApply"
)

// DefaultPruneLimit is the limit where the spec gives none, in percent.
const DefaultPruneLimit = 50

// PruneOptions say what becomes of objects that leave the bundle.
type PruneOptions struct {
	// Enabled deletes objects that are no longer in the bundle. If false they are kept, with the annotation
	// satchel.dev/orphaned. A single object is kept by the annotation satchel.dev/prune: Disabled.
	// CustomResourceDefinitions are kept unless apply.crds.deletionPolicy is Delete.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`

	// Timing is when objects are pruned. AfterHealthy, the default: when the new revision is healthy. BeforeApply:
	// before it is applied, for objects that cannot exist beside their successors; a successor that the API server
	// refuses is tried again when they are gone. The annotation satchel.dev/prune-timing sets it for a single object.
	// +optional
	// +kubebuilder:default=AfterHealthy
	Timing PruneTiming `json:"timing,omitempty"`

	// Limit is how much one upgrade may delete, as a percentage of the objects that are installed, or as a number. An
	// upgrade that would delete more, and at least five, is applied, and what left the bundle is kept until the limit
	// is raised: the condition ApprovalPending names it. Objects of rbac.authorization.k8s.io do not count, nor those
	// that an object of the same kind and namespace replaces, nor those of a revision that was never healthy.
	// +optional
	// +kubebuilder:default="50%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a number, or a percentage from 0% to 100%"
	Limit *intstr.IntOrString `json:"limit,omitempty"`
}
