// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/announce"
	"github.com/satchel-dev/satchel/internal/plural"
)

// observed says which spec and request the status is about.
func (s *state) observed() {
	status := &s.object.Status
	status.ObservedGeneration = s.object.Generation
	if at := pipeline.Requested(s.object); at != "" {
		status.LastHandledReconcileAt = at
	}
}

// fail reports the failure of a step. What was decided stays.
func (s *state) fail(err error) {
	failed := failureOf(err)
	if s.deleting() {
		pipeline.SetRetrying(s.object, v1alpha1.ReasonRemovalFailed, failed.Error())
		return
	}
	s.observed()
	s.reportFacts()
	if failed.stalled {
		pipeline.SetStalled(s.object, failed.reason, failed.Error())
	} else {
		pipeline.SetRetrying(s.object, failed.reason, failed.Error())
	}
	if !conditions.Has(s.object, v1alpha1.RolledOutCondition) {
		pipeline.SetCondition(s.object, v1alpha1.RolledOutCondition, metav1.ConditionFalse, failed.reason, failed.Error())
	}
}

// removing reports that BundleDeployments are being deleted.
func (s *state) removing(left int) {
	s.again = time.Second
	pipeline.SetProgressing(s.object, v1alpha1.ReasonRemoving, fmt.Sprintf("%s left to delete, in the reverse order of the waves", plural.Are(left, "bundledeployment")))
}

// reportFacts sets the conditions that do not depend on the decision.
func (s *state) reportFacts() {
	switch {
	case s.awaits != nil:
		pipeline.SetCondition(s.object, v1alpha1.SourceReadyCondition, metav1.ConditionFalse, s.awaits.reason, s.awaits.Error())
	case s.wanted != nil:
		pipeline.SetCondition(s.object, v1alpha1.SourceReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "revision "+s.wanted.Name+" is "+s.wanted.Revision)
	}
	switch {
	case s.unlisted != nil:
		pipeline.SetCondition(s.object, v1alpha1.ClustersKnownCondition, metav1.ConditionFalse, failureOf(s.unlisted).reason, s.unlisted.Error()+"; no cluster is removed meanwhile")
	case s.clusters != nil:
		pipeline.SetCondition(s.object, v1alpha1.ClustersKnownCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, plural.Are(len(s.clusters), "cluster")+" selected")
	}
}

// report sets every condition from the decision.
func (s *state) report() {
	s.observed()
	s.reportFacts()
	s.reportHealth()
	s.reportRemoval()
	s.reportApproval()
	why, message := s.decision.Why, announce.Message(s.object, s.decision, s.duplicates, s.leaving)
	rolledOut := metav1.ConditionFalse
	if why == v1alpha1.ReasonComplete {
		rolledOut = metav1.ConditionTrue
	}
	pipeline.SetCondition(s.object, v1alpha1.RolledOutCondition, rolledOut, why, message)
	status := &s.object.Status
	switch {
	case s.refused != nil && status.Clusters.Updating == 0:
		pipeline.SetStalled(s.object, s.refused.reason, s.refused.Error())
	case s.invalidChild() != "" && status.Clusters.Updating == 0:
		pipeline.SetStalled(s.object, v1alpha1.ReasonInvalidChild, s.invalidChild())
	case why == v1alpha1.ReasonApprovalPending && s.decision.Denied:
		pipeline.SetStalled(s.object, v1alpha1.ReasonApprovalDenied, message)
	case slices.Contains(standstills, why):
		pipeline.SetStalled(s.object, why, message)
	case why == v1alpha1.ReasonComplete:
		pipeline.SetReady(s.object, v1alpha1.ReasonSucceeded, message)
	case status.Clusters.Updating > 0 || len(status.Starting) > 0 && why != v1alpha1.ReasonSuspended:
		pipeline.SetProgressing(s.object, why, message)
	case status.CurrentRevision != nil: // it stands still by plan: what runs is ready
		pipeline.SetReady(s.object, why, message)
	default:
		pipeline.SetReady(s.object, why, message)
		pipeline.SetCondition(s.object, v1alpha1.ReadyCondition, metav1.ConditionFalse, why, message)
	}
}

// standstills are reasons that only a user, or a cluster that recovers, can end.
var standstills = []string{
	v1alpha1.ReasonMaxFailuresExceeded, v1alpha1.ReasonMaxUnavailableReached, v1alpha1.ReasonNoClusterSucceeded, v1alpha1.ReasonRevisionRejected,
}

// invalidChild tells of a cluster for which no BundleDeployment can be created; empty if there is none.
func (s *state) invalidChild() string {
	for i := range s.input.Clusters {
		if fact := &s.input.Clusters[i]; fact.Invalid != "" && fact.Wave >= 0 {
			return "cluster " + fact.Name + ": " + fact.Invalid
		}
	}
	return ""
}

// reportHealth sets Healthy: whether all clusters that can be reached are ready, with whatever revision.
func (s *state) reportHealth() {
	count := s.object.Status.Clusters
	if bad := count.Total - count.Ready - count.Unreachable; bad > 0 {
		pipeline.SetCondition(s.object, v1alpha1.HealthyCondition, metav1.ConditionFalse, v1alpha1.ReasonHealthProgressing, plural.Are(int(bad), "cluster")+" not ready")
		return
	}
	pipeline.SetCondition(s.object, v1alpha1.HealthyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "all clusters that can be reached are ready")
}

// reportRemoval sets RemovalHeld.
func (s *state) reportRemoval() {
	if status := s.object.Status.Removal; s.removal.Held && status != nil {
		pipeline.SetCondition(s.object, v1alpha1.RemovalHeldCondition, metav1.ConditionTrue, v1alpha1.ReasonHeld, fmt.Sprintf(
			"%s no longer selected, and spec.removal.limit does not allow to remove so many within an hour: select them again, raise the limit, or approve the plan %s", plural.Are(int(status.Held), "cluster"), status.Plan))
		return
	}
	conditions.Delete(s.object, v1alpha1.RemovalHeldCondition)
}

// reportApproval sets ApprovalPending.
func (s *state) reportApproval() {
	if s.decision.Why != v1alpha1.ReasonApprovalPending {
		conditions.Delete(s.object, v1alpha1.ApprovalPendingCondition)
		return
	}
	reason := v1alpha1.ReasonApprovalRequired
	if s.decision.Denied {
		reason = v1alpha1.ReasonApprovalDenied
	}
	pipeline.SetCondition(s.object, v1alpha1.ApprovalPendingCondition, metav1.ConditionTrue, reason, announce.ApprovalMessage(s.object.Name, s.decision))
}
