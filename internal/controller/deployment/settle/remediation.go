// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Healthy records that the applied revision is healthy, its hooks included.
func (st *Stage) Healthy(in *Input) error {
	in.Object.Status.Healthy.Revision, in.Object.Status.Healthy.Package = in.Object.Status.Applied.Revision, in.Note.Planned.Contains
	in.Object.Status.Healthy.Requires = in.Note.Planned.Requires
	st.keepHealthy(in)
	return in.prove()
}

// keepHealthy records the artifact of the healthy revision, and the digest of its objects.
func (st *Stage) keepHealthy(in *Input) {
	if in.Resolved.Artifact == nil || in.Resolved.Source == nil || in.Resolved.Artifact.Revision != in.Object.Status.Applied.Revision {
		return
	}
	in.Object.Status.Internal.Artifact = &v1alpha1.KeptArtifact{
		Source: in.Resolved.Source.Owner.Kind + "/" + in.Resolved.Source.Owner.Name,
		URL:    in.Resolved.Artifact.URL, Revision: in.Resolved.Artifact.Revision, Digest: in.Resolved.Artifact.Digest,
		OriginRevision: cmp.Or(in.Resolved.OriginRevision, in.Object.Status.Applied.OriginRevision),
		Bundle:         stage.InstalledBundle(in.Object),
		Material:       in.Note.Planned.Material, Proof: st.Approvals.ProveHealthy(in.Object, in.Note.Planned.Material),
	}
}

// setRemediation counts the failures of a revision, and rejects it when its retries are
// used up, so that the last healthy one is applied again. A revision that was healthy
// once, and the first revision, have nothing to roll back to.
func setRemediation(in *Input, err error) {
	record := in.Resolved.Record(in.Subject)
	if record == nil || !in.Resolved.Retries(in.Subject) || record.Attempts > in.Object.Spec.Remediation.Retries || !in.failedAgain(record, err) {
		return
	}
	record.Attempts++
	record.FailureTime = new(pipeline.StatusTime(in.Now))
	switch {
	case record.Attempts <= in.Object.Spec.Remediation.Retries:
		in.Note.Checked = time.Time{} // all is compared and applied again
	case in.Object.Status.Internal.Artifact != nil:
		in.Object.Status.Rejected.Revision, in.Settled.RejectedNow = in.Resolved.Revision(), true
	}
}

// failedAgain tells whether this is another failure of the revision: it could not be
// applied, or is not healthy in time. A transient error, such as an unreachable
// webhook, counts when it lasts longer than the timeout.
func (in *Input) failedAgain(record *v1alpha1.RevisionRecord, err error) bool {
	since := record.StartTime.Time
	if record.FailureTime != nil {
		since = record.FailureTime.Time
	}
	lasted := in.Now.Sub(since)
	switch {
	case failure.Of(err).Reason == v1alpha1.ReasonHookFailed:
		failed := in.failedHook()
		return failed != nil && record.Attempts <= failed.Attempts
	case err != nil:
		return in.failedFor(err, lasted)
	case in.Delivered.WaitsFor != "":
		return in.waitedLong() && lasted > effective.Timeout(&in.Object.Spec)
	case in.Settled.Health == nil || in.Settled.Health.Healthy():
		return false
	}
	return in.overdue() || in.Settled.Health.Failed() && (record.Attempts == 0 || lasted >= effective.RetryInterval(&in.Object.Spec))
}

// failedFor tells whether an error that lasted so long is a failure of the revision.
func (in *Input) failedFor(err error, lasted time.Duration) bool {
	reason := failure.Of(err).Reason
	refused := pipeline.FailedStep(err) == stage.StepApply && reason == v1alpha1.ReasonApplyFailed
	return reason == v1alpha1.ReasonClusterTooSlow || // after several turns
		refused && (!in.mayPass() || lasted > effective.Timeout(&in.Object.Spec))
}

// mayPass tells that every object that could not be applied failed with a transient
// error.
func (in *Input) mayPass() bool {
	return in.Delivered.Applied != nil && !slices.ContainsFunc(in.Delivered.Applied.Errors(), func(e *objecterror.Error) bool { return !e.Transient() })
}

// triedAgain is since when a failed revision is retried; zero when it is not.
func (in *Input) triedAgain() time.Time {
	record := in.Resolved.Record(in.Subject)
	if record == nil || record.FailureTime == nil || !effective.RollsBack(&in.Object.Spec) || record.Attempts > in.Object.Spec.Remediation.Retries {
		return time.Time{}
	}
	return record.FailureTime.Time
}

// remedy says what happens next to a failed revision.
func (in *Input) remedy() string {
	record := in.Resolved.Record(in.Subject)
	if record == nil || record.Attempts == 0 || in.Resolved.Rejected != nil || !effective.RollsBack(&in.Object.Spec) || in.Object.Status.Healthy.Revision == in.Resolved.Revision() {
		return ""
	}
	tries := in.Object.Spec.Remediation.Retries + 1
	if record.Attempts < tries {
		return fmt.Sprintf("\nattempt %d of %d failed: it is tried again", record.Attempts, tries)
	}
	return "\nthere is no healthy revision to roll back to: it stays, and is retried"
}

// rejection says which revision was rejected, and why.
func (in *Input) rejection() string {
	status := &in.Object.Status
	for i := range status.History {
		if record := &status.History[i]; record.Revision == status.Rejected.Revision {
			return "revision " + record.Revision + " was rejected: " + record.Message
		}
	}
	return "revision " + status.Rejected.Revision + " was rejected"
}

// setRolledBack sets Ready while the source's revision is rejected; the first line that
// holds decides.
//
//	it was rejected just now                     Progressing
//	the last healthy one is being applied again  Progressing, Retrying when a step fails or it is not healthy
//	it is applied                                Stalled, since the source's revision is not retried
func setRolledBack(in *Input, err error) {
	d, text := in.Object, in.rejection()
	back := "revision " + d.Status.Internal.Artifact.Revision
	healthy := conditions.Get(d, v1alpha1.HealthyCondition)
	switch {
	case in.Settled.RejectedNow:
		pipeline.SetProgressing(d, v1alpha1.ReasonRollingBack, text+"\nrolling back to "+back)
	case err != nil && failure.Of(err).Waiting:
		pipeline.SetProgressing(d, failure.Of(err).Reason, text+"\n"+failure.Of(err).Error())
	case err != nil:
		pipeline.SetRetrying(d, v1alpha1.ReasonRollbackFailed, text+"\nrolling back to "+back+" failed: "+failure.Of(err).Error()+appliedText(in, err))
	case in.Delivered.WaitsFor != "":
		pipeline.SetProgressing(d, v1alpha1.ReasonRollingBack, text+"\nrolling back to "+back+": "+in.Delivered.WaitsFor)
	case in.Settled.Health == nil || healthy == nil || healthy.Status == metav1.ConditionUnknown:
		pipeline.SetProgressing(d, v1alpha1.ReasonRollingBack, text+"\nrolled back to "+back+", which is not healthy yet"+in.unhealthyText())
	case healthy.Status == metav1.ConditionTrue:
		pipeline.SetStalled(d, v1alpha1.ReasonRevisionRejected, text+"\n"+back+" is applied and is kept from drifting"+stillGoing(in)+
			"; the rejected one is tried again when the source has another revision, the spec changes, or a reconcile is requested")
	default:
		pipeline.SetRetrying(d, v1alpha1.ReasonHealthFailed, text+"\n"+back+" is applied, and is not healthy"+in.unhealthyText())
	}
}

// unhealthyText says what is not healthy.
func (in *Input) unhealthyText() string {
	if in.Settled.Health == nil {
		return ""
	}
	return ": " + in.Settled.Health.Message()
}

// failedHook is the failed hook in the status; nil for none.
func (in *Input) failedHook() *v1alpha1.FailedHook {
	if in.Object.Status.Hooks == nil {
		return nil
	}
	return in.Object.Status.Hooks.Failed
}

// prove records that the installed objects were healthy: from now on their deletions
// count. Objects that left the bundle are not proven by that.
func (in *Input) prove() error {
	left := map[inventory.ID]bool{}
	for _, stage := range in.Note.Planned.Prune {
		for _, deletion := range stage.Deletions {
			left[deletion.ID] = true
		}
	}
	if in.Note.Planned.Held != nil {
		for _, id := range in.Note.Planned.Held.Objects {
			left[id] = true
		}
	}
	proven, changed := in.Listed.Current().Proven(left)
	if !changed {
		return nil
	}
	return in.Listed.Record(in.Subject, proven)
}
