// SPDX-License-Identifier: Apache-2.0

// Package announce records what changed in the status of a rollout as events, and explains reasons.
package announce

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout"
)

// Reasons of events.
const (
	eventRevisionStarted   = "RevisionStarted"
	eventRevisionCompleted = "RevisionCompleted"
	eventRevisionRefused   = "RevisionRefused"
	eventWaveStarted       = "WaveStarted"
	eventWaveSucceeded     = "WaveSucceeded"
	eventWaveCompleted     = "WaveCompleted"
	eventClusterFailed     = "ClusterFailed"
	eventClusterRebuilt    = "ClusterRebuilt"
	eventClustersReplaced  = "ClustersReplaced"
	eventHalted            = "Halted"
	eventRollbackStarted   = "RollbackStarted"
	eventRolledBack        = "RolledBack"
	eventRemovalHeld       = "RemovalHeld"
	eventApprovalUsed      = "ApprovalUsed"
)

// ApprovalUsed records that something began because of an approval.
func ApprovalUsed(recorder events.EventRecorder, object *v1alpha1.BundleRollout, name, what string) {
	if recorder == nil {
		return
	}
	recorder.Eventf(object, nil, corev1.EventTypeNormal, eventApprovalUsed, eventApprovalUsed, "bundleapproval %s was used %s", name, what)
}

// Refused records that the API server refuses what a revision consists of, and why.
func Refused(recorder events.EventRecorder, object *v1alpha1.BundleRollout, message string) {
	if recorder != nil {
		recorder.Eventf(object, nil, corev1.EventTypeWarning, eventRevisionRefused, eventRevisionRefused, "%s", message)
	}
}

// Replaced records which clusters were rebuilt, and get another BundleDeployment.
func Replaced(recorder events.EventRecorder, object *v1alpha1.BundleRollout, clusters []string) {
	if recorder != nil && len(clusters) > 0 {
		recorder.Eventf(object, nil, corev1.EventTypeWarning, eventClustersReplaced, eventClustersReplaced,
			"%s: the bundledeployments of these clusters are replaced, because they were rebuilt; objects on the former clusters are not removed", some(clusters))
	}
}

// mostNames is how many clusters a message names.
const mostNames = 10

// some are the first of some names.
func some(names []string) string {
	if len(names) <= mostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
}

// Changes records what a written status changed as events of the rollout, never one of each cluster: of a status that lists at most
// ten clusters with a problem, at most ten events follow.
func Changes(recorder events.EventRecorder, before, object *v1alpha1.BundleRollout) {
	if recorder == nil || object.Status.UpdateRevision == nil {
		return
	}
	was, is := &before.Status, &object.Status
	say := func(kind, reason, format string, args ...any) {
		recorder.Eventf(object, nil, kind, reason, reason, "%s", fmt.Sprintf(format, args...))
	}
	name := is.UpdateRevision.Name
	if was.Run != is.Run {
		say(corev1.EventTypeNormal, eventRevisionStarted, "revision %s (%s) is rolled out", name, is.UpdateRevision.Revision)
		was = &v1alpha1.BundleRolloutStatus{Conditions: was.Conditions, CurrentRevision: was.CurrentRevision, Worst: was.Worst} // its waves were of another run
	}
	tellWaves(was, is, say)
	tellFailures(was, is, say)
	switch {
	case was.RejectedRevision != is.RejectedRevision && is.RejectedRevision != "":
		say(corev1.EventTypeWarning, eventRollbackStarted, "revision %s is rejected: the clusters are brought back to revision %s", name, is.CurrentRevision.Name)
	case becomes(was, is, v1alpha1.ReasonMaxFailuresExceeded):
		say(corev1.EventTypeWarning, eventHalted, "%s", apimeta.FindStatusCondition(is.Conditions, v1alpha1.RolledOutCondition).Message)
	case becomes(was, is, v1alpha1.ReasonRevisionRejected):
		say(corev1.EventTypeNormal, eventRolledBack, "the clusters are back at revision %s", is.CurrentRevision.Name)
	}
	if is.CurrentRevision != nil && (was.CurrentRevision == nil || was.CurrentRevision.Digest != is.CurrentRevision.Digest) {
		say(corev1.EventTypeNormal, eventRevisionCompleted, "revision %s (%s) has completed all waves: %s clusters", is.CurrentRevision.Name, is.CurrentRevision.Revision, is.Progress)
	}
	held := apimeta.FindStatusCondition(is.Conditions, v1alpha1.RemovalHeldCondition)
	if held != nil && apimeta.FindStatusCondition(was.Conditions, v1alpha1.RemovalHeldCondition) == nil {
		say(corev1.EventTypeWarning, eventRemovalHeld, "%s", held.Message)
	}
}

// sayer records an event.
type sayer func(kind, reason, format string, args ...any)

// tellWaves tells which waves began, succeeded and were completed.
func tellWaves(was, is *v1alpha1.BundleRolloutStatus, say sayer) {
	known := map[string]v1alpha1.RolloutWaveStatus{}
	for _, wave := range was.Waves {
		known[wave.Name] = wave
	}
	for _, wave := range is.Waves {
		before := known[wave.Name]
		if before.StartTime == nil && wave.StartTime != nil {
			say(corev1.EventTypeNormal, eventWaveStarted, "wave %s began: %d clusters get revision %s", wave.Name, wave.Total, is.UpdateRevision.Name)
		}
		if before.SuccessTime == nil && wave.SuccessTime != nil {
			say(corev1.EventTypeNormal, eventWaveSucceeded, "wave %s: %d of %d clusters are updated", wave.Name, wave.Updated, wave.Total)
		}
		if before.CompletionTime == nil && wave.CompletionTime != nil && wave.Total > 0 {
			say(corev1.EventTypeNormal, eventWaveCompleted, "wave %s is complete", wave.Name)
		}
	}
}

// tellFailures tells which clusters failed, or were found to be rebuilt, since.
func tellFailures(was, is *v1alpha1.BundleRolloutStatus, say sayer) {
	known := map[string]bool{}
	for _, one := range was.Worst {
		known[one.Cluster+one.State] = true
	}
	for _, one := range is.Worst {
		switch {
		case known[one.Cluster+one.State]:
		case one.State == string(rollout.Held):
			say(corev1.EventTypeWarning, eventClusterRebuilt, "cluster %s of wave %s is held: %s", one.Cluster, one.Wave, one.Message)
		case one.State == string(rollout.Failed):
			say(corev1.EventTypeWarning, eventClusterFailed, "cluster %s of wave %s failed with revision %s: %s: %s", one.Cluster, one.Wave, is.UpdateRevision.Name, one.Reason, one.Message)
		}
	}
}

// becomes tells whether the condition RolledOut has a reason that it did not have before.
func becomes(was, is *v1alpha1.BundleRolloutStatus, reason string) bool {
	now, before := apimeta.FindStatusCondition(is.Conditions, v1alpha1.RolledOutCondition), apimeta.FindStatusCondition(was.Conditions, v1alpha1.RolledOutCondition)
	return now != nil && now.Reason == reason && (before == nil || before.Reason != reason)
}
