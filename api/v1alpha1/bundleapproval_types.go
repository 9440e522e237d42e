// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ApprovalDecision is what was decided about a plan.
// +kubebuilder:validation:Enum=Approve;Deny
type ApprovalDecision string

// Decisions about plans.
const (
	// DecisionApprove has the plan carried out.
	DecisionApprove ApprovalDecision = "Approve"
	// DecisionDeny keeps it from being carried out, even if another BundleApproval approves it.
	DecisionDeny ApprovalDecision = "Deny"
)

// BundleApprovalSpec says what was decided about which plan.
//
// +kubebuilder:validation:ExactlyOneOf=deployment;rollout
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a decision cannot be changed: delete this object, and create another one"
type BundleApprovalSpec struct {
	// Deployment is the name of the BundleDeployment in this namespace that the decision is about.
	// Either this field or rollout is set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Deployment string `json:"deployment,omitempty"`

	// Rollout is the name of the BundleRollout in this namespace that the decision is about: a wave
	// of it, or the removal of clusters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Rollout string `json:"rollout,omitempty"`

	// Plan is the digest of the plan, as status.plan.digest of the BundleDeployment shows it, or status.waves[].plan
	// or status.removal.plan of the BundleRollout. Another plan is not concerned, however little it differs.
	// +required
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$')",message="must be the digest of a plan, sha256: and 64 hexadecimal digits, as status.plan.digest of the BundleDeployment, or status.waves of the BundleRollout, shows it"
	Plan string `json:"plan"`

	// Decision is Approve: the plan is carried out, once. Or Deny: it is not, even if
	// another BundleApproval approves it, until this object is deleted or the plan changes.
	// +required
	Decision ApprovalDecision `json:"decision"`

	// Approver is the user who decided, for the history of a BundleRollout. It has to be the user
	// name of the client that creates this object. A client with the verb attest for bundleapprovals
	// in the namespace may name another user, such as the author of a commit.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Approver string `json:"approver,omitempty"`

	// Reason explains the decision to the author of the plan.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// ExpirationTime ends the decision: a plan that was not begun by then is not carried out
	// because of it. It does not expire if left out.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// BundleApprovalStatus says what became of a decision.
type BundleApprovalStatus struct {
	// ConsumedTime is when the plan was begun because of it. It allows no other plan then: a wave of
	// a BundleRollout that began because of it goes on.
	// +optional
	ConsumedTime *metav1.Time `json:"consumedTime,omitempty"`
}

// BundleApproval is a user's decision about a plan of a BundleDeployment, or about a wave of a BundleRollout: its
// existence is the approval. A user who may create it may approve.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=satchel,shortName=bappr
// +kubebuilder:selectablefield:JSONPath=`.spec.deployment`
// +kubebuilder:selectablefield:JSONPath=`.spec.rollout`
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.deployment`
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.spec.rollout`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision`
// +kubebuilder:printcolumn:name="Consumed",type=date,JSONPath=`.status.consumedTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expirationTime`,priority=1
// +kubebuilder:printcolumn:name="Approver",type=string,JSONPath=`.spec.approver`,priority=1
// +kubebuilder:printcolumn:name="Plan",type=string,JSONPath=`.spec.plan`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`,priority=1
type BundleApproval struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what was decided about which plan. It cannot change.
	// +required
	Spec BundleApprovalSpec `json:"spec"`

	// Status is written by the deployment controller, or the rollout controller.
	// +optional
	Status BundleApprovalStatus `json:"status,omitempty"`
}

// BundleApprovalList is a list of BundleApprovals.
//
// +kubebuilder:object:root=true
type BundleApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items of the list.
	Items []BundleApproval `json:"items"`
}
