// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Names of waves that a rollout adds itself.
const (
	// WaveAll is the only wave where the strategy has none.
	WaveAll = "all"
	// WaveUnmatched follows all others, with the clusters that no wave selects.
	WaveUnmatched = "unmatched"
	// WaveRemoval stands for the removal of clusters in a BundleApproval.
	WaveRemoval = "removal"
	// WaveTakeover stands for taking over the clusters of a former BundleRollout in a BundleApproval.
	WaveTakeover = "takeover"
)

// RolloutStrategy says in which order and how fast clusters get a revision.
type RolloutStrategy struct {
	// Waves are groups of clusters, which get a revision one after the other. A cluster belongs
	// to the first wave that selects it. Without waves there is one with the name all.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.all(w, w.name == self[self.size() - 1].name || (has(w.selector.matchLabels) && w.selector.matchLabels.size() > 0) || (has(w.selector.matchExpressions) && w.selector.matchExpressions.size() > 0))",message="only the last wave may have an empty selector: it selects all clusters, and no wave after it would have any"
	Waves []RolloutWave `json:"waves,omitempty"`

	// UnmatchedClusters says what happens to clusters that no wave selects. LastWave, the default, puts them into a
	// wave with the name unmatched, after all others. Exclude leaves them out; they are counted.
	// +optional
	// +kubebuilder:default=LastWave
	UnmatchedClusters UnmatchedClusters `json:"unmatchedClusters,omitempty"`

	// MinReady is how long a cluster has to be ready with a revision to count as updated.
	// +optional
	// +kubebuilder:default="30s"
	MinReady Duration `json:"minReady,omitzero"`

	// ProgressDeadline is how long a cluster may take to become ready. It counts as failed
	// afterwards, until it is ready. It has to be longer than the timeout of the template.
	// +optional
	// +kubebuilder:default="15m"
	ProgressDeadline Duration `json:"progressDeadline,omitzero"`

	// Unreachable says how clusters are treated that cannot be reached.
	// +optional
	// +kubebuilder:default={}
	Unreachable UnreachableClusters `json:"unreachable,omitzero"`

	// OnFailure says what happens when more clusters of a wave have failed than its maxFailures allows. Pause, the
	// default, starts no further cluster until enough of them have recovered, maxFailures is raised or there is
	// another revision. Rollback brings all clusters back to the current revision, and the revision is not tried again
	// until the source has another one, the spec changes or a reconcile is requested; without a current revision it is
	// Pause. Continue goes on.
	// +optional
	// +kubebuilder:default=Pause
	OnFailure RolloutFailureAction `json:"onFailure,omitempty"`
}

// RolloutWave is a group of clusters.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || !has(self.maxFailures) || type(self.maxUnavailable) != int || type(self.maxFailures) != int || int(self.maxUnavailable) > int(self.maxFailures)",message="maxUnavailable must be greater than maxFailures: clusters that failed are unavailable, and no further one could be started"
type RolloutWave struct {
	// Name of the wave.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self != 'unmatched' && !(self in ['removal', 'takeover'])",message="must be lower-case letters, digits and '-', and not unmatched, removal or takeover"
	Name string `json:"name"`

	// Selector of the clusters by their labels. {} selects all, and is for the last wave.
	// +required
	Selector metav1.LabelSelector `json:"selector"`

	// OrderBy is a label: the clusters of the wave are started in the order of its values, and
	// then of their names. Clusters that are ready come before others.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	OrderBy string `json:"orderBy,omitempty"`

	// MaxConcurrency is how many clusters of the wave are updated at once, as a number or as a
	// percentage of the clusters of the wave, rounded up; 1 if left out.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 1",message="must be a number of at least 1, or a percentage from 1% to 100%"
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// MaxUnavailable is how many clusters of the wave may be not ready, for any reason, with
	// the one to be started: a ready cluster is not started when there are more. As a number, or
	// as a percentage of the clusters of the wave, rounded down, but at least 1; 100% if left out.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 1",message="must be a number of at least 1, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// MaxFailures is how many clusters of the wave may fail before the rollout stops: see onFailure. As a number, or
	// as a percentage of the clusters of the wave that can be reached, rounded down; 0 if left out.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9]?[0-9]|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be a number of at least 0, or a percentage from 0% to 100%"
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`

	// Approval says when a BundleApproval is needed: None, the default; BeforeWave, to start
	// clusters of the wave; AfterWave, to start the next wave; or Both.
	// +optional
	Approval WaveApproval `json:"approval,omitempty"`

	// Soak is how long the rollout waits when all clusters of the wave are updated, before the
	// next wave. Failures during that time count.
	// +optional
	Soak Duration `json:"soak,omitzero"`

	// Windows are times at which clusters of the wave may be started. They do not stop what was started. A window of
	// kind Deny has precedence; where there is one of kind Allow, one of these has to be open.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Windows []RolloutWindow `json:"windows,omitempty"`
}

// UnmatchedClusters says what happens to clusters that no wave selects.
// +kubebuilder:validation:Enum=LastWave;Exclude
type UnmatchedClusters string

// Ways to treat clusters that no wave selects.
const (
	// UnmatchedLastWave puts them into a last wave.
	UnmatchedLastWave UnmatchedClusters = "LastWave"
	// UnmatchedExclude leaves them out.
	UnmatchedExclude UnmatchedClusters = "Exclude"
)

// WaveApproval says when a wave needs an approval.
// +kubebuilder:validation:Enum=None;BeforeWave;AfterWave;Both
type WaveApproval string

// Times of approval.
const (
	// WaveApprovalNone needs none.
	WaveApprovalNone WaveApproval = "None"
	// WaveApprovalBefore needs one to start clusters of the wave.
	WaveApprovalBefore WaveApproval = "BeforeWave"
	// WaveApprovalAfter needs one to complete the wave.
	WaveApprovalAfter WaveApproval = "AfterWave"
	// WaveApprovalBoth needs both.
	WaveApprovalBoth WaveApproval = "Both"
)

// RolloutFailureAction says what happens when too many clusters have failed.
// +kubebuilder:validation:Enum=Pause;Rollback;Continue
type RolloutFailureAction string

// Actions when too many clusters have failed.
const (
	// RolloutPause starts no further cluster.
	RolloutPause RolloutFailureAction = "Pause"
	// RolloutRollback brings all clusters back to the current revision.
	RolloutRollback RolloutFailureAction = "Rollback"
	// RolloutContinue goes on.
	RolloutContinue RolloutFailureAction = "Continue"
)

// UnreachableClusters says how clusters are treated that cannot be reached.
type UnreachableClusters struct {
	// Policy is Skip, the default: unreachable clusters count neither as updated nor as failed,
	// and get what their wave runs when they can be reached again. Wait: their wave is not
	// complete without them. Fail: they count as failed.
	// +optional
	// +kubebuilder:default=Skip
	Policy UnreachablePolicy `json:"policy,omitempty"`

	// After is how long a cluster has to be unreachable for that. A cluster that was started
	// still counts for maxConcurrency until then.
	// +optional
	// +kubebuilder:default="5m"
	After Duration `json:"after,omitzero"`
}

// UnreachablePolicy says what clusters count as that cannot be reached.
// +kubebuilder:validation:Enum=Skip;Wait;Fail
type UnreachablePolicy string

// Policies for clusters that cannot be reached.
const (
	// UnreachableSkip counts them neither as updated nor as failed.
	UnreachableSkip UnreachablePolicy = "Skip"
	// UnreachableWait does not complete a wave without them.
	UnreachableWait UnreachablePolicy = "Wait"
	// UnreachableFail counts them as failed.
	UnreachableFail UnreachablePolicy = "Fail"
)

// RolloutWindow is a time at which clusters may be started, or may not.
type RolloutWindow struct {
	// Name of the window.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Kind is Allow or Deny.
	// +required
	Kind WindowKind `json:"kind"`

	// Schedule is when the window opens, as in a CronJob: minute, hour, day of the month, month and day of the week.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-0-9*/,?]+ [-0-9*/,?]+ [-0-9*/,?]+ [-0-9a-zA-Z*/,?]+ [-0-9a-zA-Z*/,?]+$')",message="must be five fields as in a CronJob, such as 0 22 * * 1-5, separated by single spaces"
	Schedule string `json:"schedule"`

	// Duration is how long the window stays open.
	// +required
	Duration Duration `json:"duration"`

	// TimeZone of the schedule, such as Europe/Amsterdam; UTC if left out. Changes to and from
	// daylight saving time are treated as in a CronJob.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_+/-]+$') && self != 'Local'",message="must be the name of a time zone such as Europe/Amsterdam"
	TimeZone string `json:"timeZone,omitempty"`
}

// WindowKind says what a window does while it is open.
// +kubebuilder:validation:Enum=Allow;Deny
type WindowKind string

// Kinds of windows.
const (
	// WindowAllow permits starts.
	WindowAllow WindowKind = "Allow"
	// WindowDeny forbids them.
	WindowDeny WindowKind = "Deny"
)

// RolloutRemoval says what happens to clusters that are no longer selected.
type RolloutRemoval struct {
	// Policy is what happens to the objects on a cluster that exists and is no longer selected. Delete, the default,
	// uninstalls the bundle there. Orphan keeps the objects and deletes only the BundleDeployment.
	// +optional
	// +kubebuilder:default=Delete
	Policy DeletionPolicy `json:"policy,omitempty"`

	// WhenClusterGone is what happens when the Secret with the kubeconfig, or the ClusterProfile, of a cluster that is
	// removed does not exist any more. Wait, the default, keeps its BundleDeployment until the objects on the cluster
	// could be removed. Abandon deletes it without that. Abandon also replaces the BundleDeployment of a cluster that
	// was rebuilt under the same name: the one that is reached is another one, and so is its Cluster of Cluster API or
	// its ClusterProfile. With Wait such a cluster is held.
	// +optional
	// +kubebuilder:default=Wait
	WhenClusterGone GoneClusterAction `json:"whenClusterGone,omitempty"`

	// Limit is how many clusters may be removed within an hour, as a number or as a percentage of
	// the clusters that there were an hour ago, rounded down, but at least 1. Further removals, and
	// that of all clusters, wait for a BundleApproval or a higher limit.
	// +optional
	// +kubebuilder:default="10%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 1",message="must be a number of at least 1, or a percentage from 1% to 100%"
	Limit *intstr.IntOrString `json:"limit,omitempty"`
}

// GoneClusterAction says what happens when a cluster does not exist any more.
// +kubebuilder:validation:Enum=Wait;Abandon
type GoneClusterAction string

// Actions when a cluster does not exist any more.
const (
	// GoneClusterWait waits until its objects could be removed.
	GoneClusterWait GoneClusterAction = "Wait"
	// GoneClusterAbandon deletes the BundleDeployment without removing its objects.
	GoneClusterAbandon GoneClusterAction = "Abandon"
)
