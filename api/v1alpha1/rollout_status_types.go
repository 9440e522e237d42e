// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BundleRolloutStatus is what the rollout controller last saw and decided. Its size depends on the number of waves, not on
// the number of clusters.
type BundleRolloutStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about; -1 before the first reconcile.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// LastHandledReconcileAt is the value of the annotation reconcile.fluxcd.io/requestedAt that was handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// Conditions follow kstatus: Ready, Reconciling and Stalled. RolledOut is True when the newest
	// revision has completed all waves; its reason says what the rollout does or waits for.
	// Beside these: SourceReady, ClustersKnown, Healthy, RemovalHeld and ApprovalPending.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Progress is how many clusters have the newest revision, such as 12/40.
	// +optional
	Progress string `json:"progress,omitempty"`

	// Wave is the wave that is open, such as 2/4 prod-eu; empty when all are complete.
	// +optional
	Wave string `json:"wave,omitempty"`

	// CurrentRevision is the last revision that completed all waves.
	// +optional
	CurrentRevision *RolloutRevision `json:"currentRevision,omitempty"`

	// UpdateRevision is the revision that the waves get, or got last.
	// +optional
	UpdateRevision *RolloutRevision `json:"updateRevision,omitempty"`

	// RejectedRevision is the name of the revision that failed on too many clusters and was rolled back. It is not
	// tried again until the source has another revision, the spec changes, or a reconcile is requested.
	// +optional
	// +kubebuilder:validation:MaxLength=10
	RejectedRevision string `json:"rejectedRevision,omitempty"`

	// Run counts how often the waves began with the first one.
	// +optional
	Run int64 `json:"run,omitempty"`

	// Starts is how many starts of clusters were recorded so far: each has a number.
	// +optional
	Starts int64 `json:"starts,omitempty"`

	// Starting are starts that were recorded, and that the controller has not seen on the BundleDeployment yet.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Starting []RolloutStart `json:"starting,omitempty"`

	// Clusters counts clusters by their state.
	// +optional
	Clusters *RolloutClusterCounts `json:"clusters,omitempty"`

	// Waves tell of each wave, in their order.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=21
	Waves []RolloutWaveStatus `json:"waves,omitempty"`

	// Worst are clusters that failed, are overdue, cannot be reached, or are held because they were
	// rebuilt, those for the longest time first; at most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Worst []RolloutClusterProblem `json:"worst,omitempty"`

	// Removal tells of clusters that are removed, or wait for it.
	// +optional
	Removal *RolloutRemovalStatus `json:"removal,omitempty"`

	// Takeover tells of BundleDeployments of a former BundleRollout of this name with stricter waves: nothing
	// is started until an approver decides.
	// +optional
	Takeover *RolloutTakeoverStatus `json:"takeover,omitempty"`

	// History lists finished revisions, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []RolloutRecord `json:"history,omitempty"`
}

// RolloutRevision is a revision of a rollout.
type RolloutRevision struct {
	// Name of the revision: the first 10 hexadecimal digits of its digest.
	Name string `json:"name"`

	// Revision of the artifact of the source.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Revision string `json:"revision,omitempty"`

	// Digest of the content of the source, the template, the variables, the overrides and shared inputs.
	Digest string `json:"digest"`

	// StartTime is when the first wave began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the last wave was complete.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// RolloutStart is a recorded start of a cluster.
type RolloutStart struct {
	// Cluster that gets the revision.
	Cluster string `json:"cluster"`

	// Revision is the name of the revision.
	Revision string `json:"revision"`

	// Start is the number of the start.
	Start int64 `json:"start"`
}

// RolloutClusterCounts counts clusters by their state.
type RolloutClusterCounts struct {
	// Total is the number of clusters in waves.
	Total int32 `json:"total"`

	// Updated is the number of clusters that are ready with the newest revision.
	Updated int32 `json:"updated"`

	// Ready is the number of clusters that are ready, with any revision.
	Ready int32 `json:"ready"`

	// Updating is the number of clusters that were started and are not updated yet.
	Updating int32 `json:"updating"`

	// Failed is the number of clusters that failed or are overdue.
	Failed int32 `json:"failed"`

	// Unreachable is the number of clusters that cannot be reached.
	Unreachable int32 `json:"unreachable"`

	// Held is the number of clusters that wait for a user: suspended, waiting for an approval of
	// their own plan, or another cluster than before.
	Held int32 `json:"held"`

	// Pending is the number of clusters that were not started.
	Pending int32 `json:"pending"`

	// Leaving is the number of clusters that are no longer selected and are not removed yet.
	Leaving int32 `json:"leaving"`

	// Unmatched is the number of clusters that no wave selects, and that unmatchedClusters excludes.
	Unmatched int32 `json:"unmatched"`
}

// RolloutWaveState is how far a wave is.
// +kubebuilder:validation:Enum=Pending;Open;Succeeded;Complete
type RolloutWaveState string

// States of waves.
const (
	// WavePending is a wave that did not begin.
	WavePending RolloutWaveState = "Pending"
	// WaveOpen is the wave of which clusters are started.
	WaveOpen RolloutWaveState = "Open"
	// WaveSucceeded is a wave of which all clusters are updated: it soaks, or waits for an approval.
	WaveSucceeded RolloutWaveState = "Succeeded"
	// WaveComplete is a wave after which the next one may begin.
	WaveComplete RolloutWaveState = "Complete"
)

// RolloutWaveStatus tells of a wave.
type RolloutWaveStatus struct {
	// Name of the wave.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// State is Pending, Open, Succeeded (it soaks, or waits for an approval) or Complete.
	State RolloutWaveState `json:"state"`

	// Total is the number of its clusters.
	Total int32 `json:"total"`

	// Updated is the number of clusters that are ready with the newest revision.
	Updated int32 `json:"updated"`

	// Updating is the number of clusters that were started and are not updated yet.
	Updating int32 `json:"updating"`

	// Failed is the number of clusters that failed or are overdue.
	Failed int32 `json:"failed"`

	// Unreachable is the number of clusters that cannot be reached.
	Unreachable int32 `json:"unreachable"`

	// StartTime is when the first of its clusters was started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// SuccessTime is when all of its clusters were updated for the first time in this run.
	// +optional
	SuccessTime *metav1.Time `json:"successTime,omitempty"`

	// CompletionTime is when the next wave could begin.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Plan is the digest that the next BundleApproval of this wave has to name: of the wave, whether it is to begin or
	// to end, the revision, the current revision and the run. It is empty when no further approval is needed.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Plan string `json:"plan,omitempty"`

	// Approval is the name of the BundleApproval that permits to start clusters of the wave.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Approval string `json:"approval,omitempty"`

	// EndApproval is the name of the BundleApproval by which the wave was completed.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	EndApproval string `json:"endApproval,omitempty"`

	// WaitsFor is what the wave waits for, as the reason of the condition RolledOut names it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	WaitsFor string `json:"waitsFor,omitempty"`

	// EndTime is when that ends, where it is known: the end of the soak time, or when a window opens.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
}

// RolloutClusterProblem tells of a cluster that failed, is overdue, cannot be reached or was rebuilt.
type RolloutClusterProblem struct {
	// Cluster is its name.
	Cluster string `json:"cluster"`

	// Wave that it belongs to.
	// +optional
	Wave string `json:"wave,omitempty"`

	// State is Failed, Unreachable, or Held where the cluster is another one than before.
	State string `json:"state"`

	// Reason of the condition Ready of its BundleDeployment, or Overdue or InvalidChild.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message of that condition, or what to do about a cluster that was rebuilt; at most 256 bytes.
	// +optional
	Message string `json:"message,omitempty"`

	// StartTime is when it began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
}

// RolloutRemovalStatus tells of clusters that are removed, or wait for it.
type RolloutRemovalStatus struct {
	// StartTime is when the hour began in which removed counts.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// Clusters is how many clusters there were then.
	// +optional
	Clusters int32 `json:"clusters,omitempty"`

	// Removed is how many clusters were removed since then.
	Removed int32 `json:"removed"`

	// Held is how many clusters wait for a higher limit, or for an approval.
	Held int32 `json:"held"`

	// Plan is the digest of the names of the clusters that wait, which a BundleApproval has to name.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Plan string `json:"plan,omitempty"`
}

// RolloutTakeoverStatus tells of BundleDeployments that wait to be taken over from a former BundleRollout.
type RolloutTakeoverStatus struct {
	// Clusters is how many clusters have such a BundleDeployment.
	Clusters int32 `json:"clusters"`

	// Plan is the digest of what is taken over by which BundleRollout, which a BundleApproval has to name.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Plan string `json:"plan,omitempty"`
}

// RolloutOutcome is how a revision ended.
// +kubebuilder:validation:Enum=Complete;RolledBack;Superseded;Aborted
type RolloutOutcome string

// Outcomes of revisions.
const (
	// RolloutComplete is a revision that completed all waves.
	RolloutComplete RolloutOutcome = "Complete"
	// RolloutRolledBack is a revision that failed on too many clusters.
	RolloutRolledBack RolloutOutcome = "RolledBack"
	// RolloutSuperseded is a revision that a newer one replaced before it was complete.
	RolloutSuperseded RolloutOutcome = "Superseded"
	// RolloutAborted is a revision that a user stopped.
	RolloutAborted RolloutOutcome = "Aborted"
)

// RolloutRecord tells of a finished revision.
type RolloutRecord struct {
	// Name of the revision.
	Name string `json:"name"`

	// Revision of the artifact of the source.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Revision string `json:"revision,omitempty"`

	// StartTime is when the first wave began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when it ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Outcome is Complete, RolledBack, Superseded or Aborted.
	Outcome RolloutOutcome `json:"outcome"`

	// Updated is how many clusters were ready with it then.
	Updated int32 `json:"updated"`

	// Failed is how many clusters had failed then.
	Failed int32 `json:"failed"`

	// Approvals are the BundleApprovals that were used.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=42
	Approvals []RolloutApproval `json:"approvals,omitempty"`
}

// RolloutApproval is a BundleApproval that was used.
type RolloutApproval struct {
	// Wave that it was for.
	Wave string `json:"wave"`

	// Name of the BundleApproval.
	Name string `json:"name"`

	// Approver is spec.approver of the BundleApproval.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Approver string `json:"approver,omitempty"`
}
