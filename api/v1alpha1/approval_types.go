// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RequireApprovalLabel, with the value RequireApproval, on a namespace demands that
// the plans of each BundleDeployment in it need approval: see spec.approval.
const (
	RequireApprovalLabel = "satchel.dev/approval"
	RequireApproval      = "required"
)

// RequireSignaturesLabel, with the value RequireSignatures, on a namespace demands a
// signature of everything that is installed in it: see spec.sources[].*.verify.
const (
	RequireSignaturesLabel = "satchel.dev/signatures"
	RequireSignatures      = "required"
)

// ApprovalMode says which plans wait for an approval.
// +kubebuilder:validation:Enum=Automatic;Manual;OnEscalation
type ApprovalMode string

// Modes of approval.
const (
	// ApprovalAutomatic carries every plan out.
	ApprovalAutomatic ApprovalMode = "Automatic"
	// ApprovalManual carries a plan out when it is approved.
	ApprovalManual ApprovalMode = "Manual"
	// ApprovalOnEscalation wants an approval of plans with anything that is not known to be harmless.
	ApprovalOnEscalation ApprovalMode = "OnEscalation"
)

// ApprovalOptions say which plans wait for a BundleApproval.
type ApprovalOptions struct {
	// Mode says which plans wait until a BundleApproval of their digest exists. Automatic, the default: none. Manual:
	// all, the first one and those of changes of this spec included. OnEscalation: all but those in which everything
	// that is new or changed is known to be harmless: workloads in the install namespace with the same ServiceAccount,
	// without more privileges and without references to Secrets, ConfigMaps and claims of others; ConfigMaps; Secrets
	// of ordinary types; Services inside of the cluster; custom resources of the CustomResourceDefinitions of the
	// bundle; roles that grant nothing new. So plans wait that grant new permissions, change
	// CustomResourceDefinitions, delete, recreate or adopt objects, concern cluster-scoped objects or other
	// namespaces, or other kinds and fields, change deletionPolicy, or are carried out as another ServiceAccount, on
	// another cluster, or with another kubeconfig than the last one. Drift of the applied revision is corrected in the
	// meantime. To leave Manual or OnEscalation, a user needs permission to create bundleapprovals. In a namespace
	// with the label satchel.dev/approval=required the first plan always waits, and Automatic holds only for the spec,
	// the source and the inputs that were approved last.
	// +optional
	// +kubebuilder:default=Automatic
	Mode ApprovalMode `json:"mode,omitempty"`
}

// ExecutedPlan is a plan that is or was carried out, and the approval that allowed it.
type ExecutedPlan struct {
	// Plan is its digest, as status.plan.digest showed it before.
	Plan string `json:"plan"`

	// Key is the digest of the parts of the plan that do not depend on existing objects: the content, and the fields
	// of this spec about its use. As long as it is the same, only further deletions need approval.
	Key string `json:"key"`

	// Terms is the digest of the part of Key that this spec and the cluster decide.
	Terms string `json:"terms"`

	// Base is the digest of the plan that was carried out before.
	// +optional
	Base string `json:"base,omitempty"`

	// Approval is the BundleApproval that allowed it; empty where none was needed.
	// +optional
	Approval string `json:"approval,omitempty"`

	// Grounds is the digest of the inputs of the last approved plan: this spec, that of the source, and the Secrets
	// and ConfigMaps in them. In a namespace that requires approval, Automatic is valid for these only.
	// +optional
	Grounds string `json:"grounds,omitempty"`

	// Generation of the newest spec that leads to this plan.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// StartTime is when it was begun.
	StartTime metav1.Time `json:"startTime"`

	// ServiceAccountName that is impersonated to carry it out.
	ServiceAccountName string `json:"serviceAccountName"`

	// RemoteServiceAccountName that is impersonated to carry it out on another cluster.
	// +optional
	RemoteServiceAccountName string `json:"remoteServiceAccountName,omitempty"`

	// Cluster on which it is carried out.
	// +optional
	Cluster *ClusterReference `json:"cluster,omitempty"`

	// KubeConfigReach are keyed hashes of the server, the certificate authorities and the user of that kubeconfig.
	// +optional
	KubeConfigReach string `json:"kubeConfigReach,omitempty"`

	// DeletionPolicy that holds when this object is deleted.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// DeletesDefinitions says whether CustomResourceDefinitions are deleted, too.
	// +optional
	DeletesDefinitions bool `json:"deletesDefinitions,omitempty"`

	// Proof authenticates the fields above, and only the controller can write it: if it is
	// missing or does not match them, they are ignored.
	Proof string `json:"proof"`
}
