// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Conditions of BundleRollout beside the three of kstatus, SourceReady, Healthy and ApprovalPending.
const (
	// RolledOutCondition is True when the newest revision has completed all waves. Its reason
	// says what the rollout does or waits for.
	RolledOutCondition = "RolledOut"
	// ClustersKnownCondition is False when clusters could not be listed: no cluster is removed then.
	ClustersKnownCondition = "ClustersKnown"
	// RemovalHeldCondition is True while clusters that are no longer selected wait for a higher
	// limit, or for an approval. It is absent otherwise.
	RemovalHeldCondition = "RemovalHeld"
)

// Reasons of the condition RolledOut: one for each decision.
const (
	// ReasonUpdating says that clusters are being updated.
	ReasonUpdating = "Updating"
	// ReasonSoaking says that a wave succeeded, and that its soak time has not ended, or that its
	// clusters are checked once more.
	ReasonSoaking = "Soaking"
	// ReasonOutsideWindow says that no cluster may be started at this time.
	ReasonOutsideWindow = "OutsideWindow"
	// ReasonHeld says that clusters of the open wave wait for a user.
	ReasonHeld = "Held"
	// ReasonNoClusterReachable says that no cluster of the open wave can be reached.
	ReasonNoClusterReachable = "NoClusterReachable"
	// ReasonNoClusterSucceeded says that no cluster of the open wave was updated successfully, and
	// that no other one can be started.
	ReasonNoClusterSucceeded = "NoClusterSucceeded"
	// ReasonMaxUnavailableReached says that too many clusters are not ready to start another one.
	ReasonMaxUnavailableReached = "MaxUnavailableReached"
	// ReasonMaxFailuresExceeded says that more clusters failed than maxFailures allows.
	ReasonMaxFailuresExceeded = "MaxFailuresExceeded"
	// ReasonCatchingUp says that all waves are complete, and that clusters which joined or were
	// unreachable get the revision.
	ReasonCatchingUp = "CatchingUp"
	// ReasonComplete says that all waves are complete.
	ReasonComplete = "Complete"
)

// Reasons of other conditions of BundleRollout, in addition to those of the other kinds.
const (
	// ReasonRevisionNotFound says that spec.revision names no revision that is stored.
	ReasonRevisionNotFound = "RevisionNotFound"
	// ReasonRevisionCollision says that an object with the name of a revision exists, and holds another one.
	ReasonRevisionCollision = "RevisionCollision"
	// ReasonInvalidChild says that the BundleDeployment of a cluster cannot be created: a variable has
	// no value, an object of its name exists that the rollout did not create, or the API server refuses
	// it in the dry run before a revision is started.
	ReasonInvalidChild = "InvalidChild"
	// ReasonOverdue says that a cluster did not become ready within spec.strategy.progressDeadline.
	ReasonOverdue = "Overdue"
	// ReasonDuplicateCluster says that two names stand for one cluster.
	ReasonDuplicateCluster = "DuplicateCluster"
)
