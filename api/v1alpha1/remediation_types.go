// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RemediationStrategy says what becomes of a revision that fails.
// +kubebuilder:validation:Enum=None;Rollback
type RemediationStrategy string

// Strategies of remediation.
const (
	// RemediationNone leaves a failed revision where it is and goes on trying.
	RemediationNone RemediationStrategy = "None"
	// RemediationRollback goes back to the last healthy revision.
	RemediationRollback RemediationStrategy = "Rollback"
)

// RemediationOptions say what to do about a revision that fails while it is applied, or
// does not become healthy in time.
type RemediationOptions struct {
	// Strategy None leaves the failed revision in place and retries it without limit. Rollback restores the last
	// healthy revision and rejects the failed one: it is not tried again until the source has another revision, this
	// spec changes, or a reconcile is requested. The first revision has no predecessor, and stays.
	// +optional
	// +kubebuilder:default=None
	Strategy RemediationStrategy `json:"strategy,omitempty"`

	// Retries is how many more times a failed revision is tried before it is rejected: applied
	// again, or given the timeout once more if it did not become healthy.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Retries int32 `json:"retries,omitempty"`
}

// Outcome is what became of a revision.
// +kubebuilder:validation:Enum=Healthy;Failed;RolledBack;Superseded
type Outcome string

// Outcomes of revisions.
const (
	// OutcomeHealthy says that all objects of the revision became healthy.
	OutcomeHealthy Outcome = "Healthy"
	// OutcomeFailed says that it could not be applied or did not become healthy.
	OutcomeFailed Outcome = "Failed"
	// OutcomeRolledBack says that it failed, and that the last healthy revision is applied again.
	OutcomeRolledBack Outcome = "RolledBack"
	// OutcomeSuperseded says that another revision came before this one had ended.
	OutcomeSuperseded Outcome = "Superseded"
)

// RevisionRecord is what happened to one revision.
type RevisionRecord struct {
	// Revision of the artifact.
	Revision string `json:"revision"`

	// OriginRevision names the revision as its upstream did when it was first tried, such as main@sha1:<commit> or
	// v1.2.3@sha256:<manifest digest>. It stays when another commit or tag has the same content.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	OriginRevision string `json:"originRevision,omitempty"`

	// Version of the bundle, as in status.applied.version.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`

	// Bundle of a catalog, with spec.catalog.
	// +optional
	Bundle string `json:"bundle,omitempty"`

	// Catalog that the bundle was found in, as namespace/name.
	// +optional
	Catalog string `json:"catalog,omitempty"`

	// Channels of the catalog with the bundle, at most 20.
	// +optional
	// +listType=atomic
	Channels []string `json:"channels,omitempty"`

	// Digest of the artifact's file.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Sources are where it was fetched from, and by which digests, which is what satchel rollback fetches again; empty
	// where that is not known, as with sources of Flux. Of very long histories only the newest have it.
	// +optional
	// +listType=atomic
	Sources []RevisionOrigin `json:"sources,omitempty"`

	// Plan is the digest of the plan that brought it, or was to.
	// +optional
	Plan string `json:"plan,omitempty"`

	// Generation of the spec with which it was tried last.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// StartTime is when it was first tried.
	StartTime metav1.Time `json:"startTime"`

	// CompletionTime is when it came to its outcome.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Outcome is Healthy, Failed, RolledBack or Superseded; empty while it is in progress.
	// +optional
	Outcome Outcome `json:"outcome,omitempty"`

	// Message says why it failed, in short.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// Attempts is how often it failed, where remediation counts that.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// FailureTime is when it failed last, where remediation counts that.
	// +optional
	FailureTime *metav1.Time `json:"failureTime,omitempty"`

	// Create, Update and Delete are the numbers of objects that its plan concerned.
	// +optional
	Create int32 `json:"create,omitempty"`
	// Update is the number of objects to change.
	// +optional
	Update int32 `json:"update,omitempty"`
	// Delete is the number of objects to delete.
	// +optional
	Delete int32 `json:"delete,omitempty"`
}

// KeptArtifact is where the content of a revision was loaded from, by which it is
// loaded again from the controller's cache.
type KeptArtifact struct {
	// Source is the kind and name of the source, in this namespace.
	Source string `json:"source"`

	// URL that it was loaded from.
	URL string `json:"url"`

	// Revision of the artifact.
	Revision string `json:"revision"`

	// Bundle of a catalog that it is, with spec.catalog.
	// +optional
	Bundle *InstalledBundle `json:"bundle,omitempty"`

	// OriginRevision names it as its upstream does.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	OriginRevision string `json:"originRevision,omitempty"`

	// Digest of the artifact's file.
	Digest string `json:"digest"`

	// Material is the digest of what the revision became, values of Secrets included by a
	// hash with the controller's key; where that was approved, going back to it is, too.
	// +optional
	Material string `json:"material,omitempty"`

	// Proof of Material that only the controller can write.
	// +optional
	Proof string `json:"proof,omitempty"`
}
