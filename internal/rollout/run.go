// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Course is what decides which revision a rollout moves to.
type Course struct {
	Status *v1alpha1.BundleRolloutStatus
	// Wanted is the revision that spec.revision names, or else the newest one of the source and the spec; nil while there is none.
	Wanted *v1alpha1.RolloutRevision
	// Retry tells that a reconcile was requested, or that the spec changed, since the revision was rejected.
	Retry bool
	// HistoryLimit is spec.historyLimit.
	HistoryLimit int
	// Approvals tell who decided.
	Approvals []Approval
	Now       metav1.Time
}

// Steer changes the status to the revision that the rollout moves to, and tells whether it changed anything. A run of the waves
// begins where the revision is another one, or is tried again. To go to the current revision in a run rejects the revision of the
// run: all clusters are brought back.
func Steer(course Course) bool {
	status, wanted := course.Status, course.Wanted
	update, current := status.UpdateRevision, status.CurrentRevision
	isRejected := status.RejectedRevision != ""
	switch {
	case wanted == nil:
		return false
	case update == nil:
		return begin(course)
	case wanted.Digest == update.Digest && (!isRejected || !course.Retry):
		return false
	case current != nil && wanted.Digest == current.Digest:
		return abort(course)
	case isRejected || completed(status):
		return begin(course)
	}
	finishRun(course, v1alpha1.RolloutSuperseded)
	return begin(course)
}

// abort brings all clusters back to the current revision, unless that is happening already.
func abort(course Course) bool {
	status := course.Status
	if Returns(status) {
		return false
	}
	finishRun(course, v1alpha1.RolloutAborted)
	status.RejectedRevision = status.UpdateRevision.Name
	return true
}

// Settle records in the status what a decision found: that the revision is complete, that it is rejected, or that it was brought
// back. Its waves and starts are recorded by the caller.
func Settle(course Course, decision *Decision) {
	status := course.Status
	update, current := status.UpdateRevision, status.CurrentRevision
	switch {
	case decision.Reject:
		finishRun(course, v1alpha1.RolloutRolledBack)
		status.RejectedRevision = update.Name
	case decision.Complete && (current == nil || current.Digest != update.Digest):
		update.CompletionTime = course.Now.DeepCopy()
		status.CurrentRevision = update.DeepCopy()
		finishRun(course, v1alpha1.RolloutComplete)
	case decision.Returned && current != nil && course.Wanted != nil && course.Wanted.Digest == current.Digest:
		// Nothing is left of the revision of the run: the current one is complete again.
		status.UpdateRevision, status.RejectedRevision = current.DeepCopy(), ""
		for i := range status.Waves {
			status.Waves[i].CompletionTime = course.Now.DeepCopy()
			status.Waves[i].State = v1alpha1.WaveComplete
		}
	}
}

// Returns tells whether clusters are brought back to the current revision.
func Returns(status *v1alpha1.BundleRolloutStatus) bool {
	return status.RejectedRevision != "" && status.CurrentRevision != nil && status.UpdateRevision != nil &&
		status.RejectedRevision == status.UpdateRevision.Name
}

// begin begins a run of the waves with the wanted revision. Recorded starts stay: they are carried out first.
func begin(course Course) bool {
	status := course.Status
	status.UpdateRevision = course.Wanted.DeepCopy()
	status.UpdateRevision.StartTime = course.Now.DeepCopy()
	status.UpdateRevision.CompletionTime = nil
	status.RejectedRevision = ""
	status.Run++
	status.Waves = nil
	return true
}

// completed tells whether the update revision has completed all waves.
func completed(status *v1alpha1.BundleRolloutStatus) bool {
	return status.CurrentRevision != nil && status.CurrentRevision.Digest == status.UpdateRevision.Digest
}

// finishRun puts the update revision at the head of the history. A revision that ends twice, such as one that was tried again,
// has one record.
func finishRun(course Course, outcome v1alpha1.RolloutOutcome) {
	status := course.Status
	update := status.UpdateRevision
	record := v1alpha1.RolloutRecord{
		Name: update.Name, Revision: update.Revision, StartTime: update.StartTime, CompletionTime: course.Now.DeepCopy(), Outcome: outcome,
	}
	if status.Clusters != nil {
		record.Updated = status.Clusters.Updated
		record.Failed = status.Clusters.Failed
	}
	for i := range status.Waves {
		wave := &status.Waves[i]
		for _, name := range []string{wave.Approval, wave.EndApproval} {
			if name != "" {
				record.Approvals = append(record.Approvals, v1alpha1.RolloutApproval{Wave: wave.Name, Name: name, Approver: approver(course, name)})
			}
		}
	}
	status.History = slices.DeleteFunc(status.History, func(r v1alpha1.RolloutRecord) bool { return r.Name == record.Name })
	status.History = slices.Insert(status.History, 0, record)
	status.History = status.History[:min(len(status.History), max(course.HistoryLimit, 1))]
}

// approver is who made the decision with a name; empty if that is not known.
func approver(course Course, name string) string {
	at := slices.IndexFunc(course.Approvals, func(a Approval) bool { return a.Name == name })
	if at < 0 {
		return ""
	}
	return course.Approvals[at].Approver
}
