// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HookRunAnnotation on the object of a hook names the run that it belongs to, as status.hooks.run has it.
const HookRunAnnotation = "satchel.dev/hook-run"

// DeleteHooksAnnotation on a BundleDeployment, with the value Skip, skips the hooks of its deletion.
const DeleteHooksAnnotation = "satchel.dev/delete-hooks"

// ResourcePolicyAnnotation with the value keep is what Helm has for DeletionPolicyAnnotation.
const ResourcePolicyAnnotation = "helm.sh/resource-policy"

// HookOperation is what hooks run before and after.
// +kubebuilder:validation:Enum=Install;Upgrade;Delete;Adopt
type HookOperation string

// Operations.
const (
	// HookInstall is the first revision that is applied.
	HookInstall HookOperation = "Install"
	// HookUpgrade is any other one, also when remediation goes back to it.
	HookUpgrade HookOperation = "Upgrade"
	// HookDelete is the removal of the BundleDeployment.
	HookDelete HookOperation = "Delete"
	// HookAdopt is the first revision, where its objects ran before, as after kubectl satchel-migrate adopt:
	// no hook runs.
	HookAdopt HookOperation = "Adopt"
)

// HooksStatus tells which hooks of the bundle ran. It is what keeps a hook from running twice.
type HooksStatus struct {
	// Operation that the hooks surround. Adopt is the first revision of objects that ran
	// before, as after kubectl satchel-migrate adopt: no hook runs.
	Operation HookOperation `json:"operation"`

	// Run names this attempt of the operation. The objects of its hooks carry it in the
	// annotation satchel.dev/hook-run.
	Run string `json:"run"`

	// Revision of the artifact.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Digest of the artifact's file.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Generation of the spec.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Material is the digest of what is installed, values of Secrets included by a hash with the
	// controller's key. Another one is another operation.
	// +optional
	Material string `json:"material,omitempty"`

	// Content is the digest of the converted objects, as in status.plan.
	// +optional
	Content string `json:"content,omitempty"`

	// Inputs is the digest of the Secrets and ConfigMaps that went into the conversion, as in status.plan.
	// +optional
	Inputs string `json:"inputs,omitempty"`

	// Key is a fingerprint of the controller's key.
	// +optional
	Key string `json:"key,omitempty"`

	// Completed is how many of the Total hooks ran, those of before and after the operation together.
	// +optional
	Completed int32 `json:"completed,omitempty"`

	// Total is how many hooks the operation has.
	// +optional
	Total int32 `json:"total,omitempty"`

	// OnDelete is how many hooks will run when the BundleDeployment is deleted.
	// +optional
	OnDelete int32 `json:"onDelete,omitempty"`

	// Running is the hook that runs now.
	// +optional
	Running *RunningHook `json:"running,omitempty"`

	// Failed is the hook that failed. It runs again when a reconcile is requested, the spec
	// changes, or remediation tries the revision once more.
	// +optional
	Failed *FailedHook `json:"failed,omitempty"`

	// Removed says that the objects are deleted, and only the hooks after that remain.
	// +optional
	Removed bool `json:"removed,omitempty"`

	// CompletionTime is when the operation had ended with all of its hooks.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// HookReference names the object of a hook.
type HookReference struct {
	// Event at which it runs: pre-install, post-install, pre-upgrade, post-upgrade, pre-delete or post-delete.
	Event string `json:"event"`

	// Group of its kind.
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the object.
	Kind string `json:"kind"`

	// Namespace of the object; empty for those of the cluster.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	Name string `json:"name"`
}

// RunningHook is a hook that is waited for.
type RunningHook struct {
	HookReference `json:",inline"`

	// StartTime is when it was begun. It may take spec.health.timeout.
	StartTime metav1.Time `json:"startTime"`

	// UID of its object, once that is created.
	// +optional
	UID string `json:"uid,omitempty"`
}

// FailedHook is a hook that failed.
type FailedHook struct {
	HookReference `json:",inline"`

	// Message says why.
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message"`

	// Attempts is how often its revision had failed before, where remediation counts that.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// Generation of the spec with which it failed.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Requested is the request to reconcile that was known then.
	// +optional
	Requested string `json:"requested,omitempty"`
}
