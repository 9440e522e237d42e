// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// chooseRevision uses the last healthy revision instead of the source's while that one
// is rejected. The rejection ends when the source has another revision, the spec
// changes, or a reconcile is requested.
func (s *state) chooseRevision() error {
	status := &s.Object.Status
	kept := status.LastHealthyArtifact
	if status.RejectedRevision == "" {
		return nil
	}
	if s.resolved.Artifact.Revision != status.RejectedRevision || s.asked() || kept == nil {
		status.RejectedRevision, s.resolved.Lifted = "", true
		return nil
	}
	owner, err := ownerOf(kept, s.Object.Namespace)
	if err != nil {
		return failure.Error{Reason: v1alpha1.ReasonRollbackFailed, Err: err}
	}
	s.resolved.Rejected, s.resolved.SourceOwner, s.resolved.Source.Owner = s.resolved.Artifact, s.resolved.Source.Owner, owner
	s.resolved.Artifact = &meta.Artifact{URL: kept.URL, Revision: kept.Revision, Digest: kept.Digest}
	return nil
}

// asked tells that the spec changed, or a reconcile was requested, since the status was
// written.
func (s *state) asked() bool {
	return s.Before.Status.ObservedGeneration != s.Object.Generation ||
		pipeline.Requested(s.Object) != "" && pipeline.Requested(s.Object) != s.Before.Status.LastHandledReconcileAt
}

// ownerOf is the source of a kept artifact, in the deployment's namespace.
func ownerOf(kept *v1alpha1.KeptArtifact, namespace string) (artifact.Owner, error) {
	kind, name, _ := strings.Cut(kept.Source, "/")
	owner := artifact.Owner{Kind: kind, Namespace: namespace, Name: name}
	return owner, owner.Validate()
}

// keepHealthy records the artifact of the healthy revision, and the digest of its objects.
func (r *Reconciler) keepHealthy(s *state) {
	if s.resolved.Artifact == nil || s.resolved.Source == nil || s.resolved.Artifact.Revision != s.Object.Status.LastAppliedRevision {
		return
	}
	s.Object.Status.LastHealthyArtifact = &v1alpha1.KeptArtifact{
		Source: s.resolved.Source.Owner.Kind + "/" + s.resolved.Source.Owner.Name,
		URL:    s.resolved.Artifact.URL, Revision: s.resolved.Artifact.Revision, Digest: s.resolved.Artifact.Digest,
		Material: s.note.Planned.Material, Proof: r.approvals().ProveHealthy(s.Object, s.note.Planned.Material),
	}
}

// worthKeeping are the artifacts that must stay in the cache: the applied one, and the
// one for a rollback.
func (s *state) worthKeeping() []loader.Kept {
	kept := []loader.Kept{{Owner: s.resolved.Source.Owner, Digest: s.resolved.Artifact.Digest}}
	if healthy := s.Object.Status.LastHealthyArtifact; healthy != nil && s.Object.Spec.RollsBack() {
		if owner, err := ownerOf(healthy, s.Object.Namespace); err == nil {
			kept = append(kept, loader.Kept{Owner: owner, Digest: healthy.Digest})
		}
	}
	return kept
}

// setRemediation counts the failures of a revision, and rejects it when its retries are
// used up, so that the last healthy one is applied again. A revision that was healthy
// once, and the first revision, have nothing to roll back to.
func setRemediation(s *state, err error) {
	record := s.resolved.Record(&s.Subject)
	if record == nil || !s.resolved.Retries(&s.Subject) || record.Attempts > s.Object.Spec.Remediation.Retries || !s.failedAgain(record, err) {
		return
	}
	record.Attempts++
	record.LastFailedTime = new(pipeline.StatusTime(s.Now))
	switch {
	case record.Attempts <= s.Object.Spec.Remediation.Retries:
		s.note.Checked = time.Time{} // all is compared and applied again
	case s.Object.Status.LastHealthyArtifact != nil:
		s.Object.Status.RejectedRevision, s.settled.RejectedNow = s.resolved.Revision(), true
	}
}

// failedAgain tells whether this is another failure of the revision: it could not be
// applied, or is not healthy in time. A transient error, such as an unreachable
// webhook, counts when it lasts longer than the timeout.
func (s *state) failedAgain(record *v1alpha1.RevisionRecord, err error) bool {
	since := record.StartedTime.Time
	if record.LastFailedTime != nil {
		since = record.LastFailedTime.Time
	}
	lasted := s.Now.Sub(since)
	switch {
	case failure.Of(err).Reason == v1alpha1.ReasonHookFailed:
		failed := s.failedHook()
		return failed != nil && record.Attempts <= failed.Attempts
	case err != nil:
		return s.failedFor(err, lasted)
	case s.delivered.WaitsFor != "":
		return s.waitedLong() && lasted > s.Object.Spec.TimeoutOrDefault()
	case s.settled.Health == nil || s.settled.Health.Healthy():
		return false
	}
	return s.overdue() || s.settled.Health.Failed() && (record.Attempts == 0 || lasted >= s.Object.Spec.RetryIntervalOrDefault())
}

// failedFor tells whether an error that lasted so long is a failure of the revision.
func (s *state) failedFor(err error, lasted time.Duration) bool {
	reason := failure.Of(err).Reason
	refused := pipeline.FailedStep(err) == stepApply && reason == v1alpha1.ReasonApplyFailed
	return reason == v1alpha1.ReasonClusterTooSlow || // after several turns
		refused && (!s.mayPass() || lasted > s.Object.Spec.TimeoutOrDefault())
}

// mayPass tells that every object that could not be applied failed with a transient
// error.
func (s *state) mayPass() bool {
	return s.delivered.Applied != nil && !slices.ContainsFunc(s.delivered.Applied.Errors(), func(e *objecterror.Error) bool { return !e.Transient() })
}

// triedAgain is since when a failed revision is retried; zero when it is not.
func (s *state) triedAgain() time.Time {
	record := s.resolved.Record(&s.Subject)
	if record == nil || record.LastFailedTime == nil || !s.Object.Spec.RollsBack() || record.Attempts > s.Object.Spec.Remediation.Retries {
		return time.Time{}
	}
	return record.LastFailedTime.Time
}

// remedy says what happens next to a failed revision.
func (s *state) remedy() string {
	record := s.resolved.Record(&s.Subject)
	if record == nil || record.Attempts == 0 || s.resolved.Rejected != nil || !s.Object.Spec.RollsBack() || s.Object.Status.LastHealthyRevision == s.resolved.Revision() {
		return ""
	}
	tries := s.Object.Spec.Remediation.Retries + 1
	if record.Attempts < tries {
		return fmt.Sprintf("\nattempt %d of %d failed: it is tried again", record.Attempts, tries)
	}
	return "\nthere is no healthy revision to roll back to: it stays, and is retried"
}

// rejection says which revision was rejected, and why.
func (s *state) rejection() string {
	status := &s.Object.Status
	for i := range status.History {
		if record := &status.History[i]; record.Revision == status.RejectedRevision {
			return "revision " + record.Revision + " was rejected: " + record.Message
		}
	}
	return "revision " + status.RejectedRevision + " was rejected"
}

// setRolledBack sets Ready while the source's revision is rejected; the first line that
// holds decides.
//
//	it was rejected just now                     Progressing
//	the last healthy one is being applied again  Progressing, Retrying when a step fails or it is not healthy
//	it is applied                                Stalled, since the source's revision is not retried
func setRolledBack(s *state, err error) {
	d, text := s.Object, s.rejection()
	back := "revision " + d.Status.LastHealthyArtifact.Revision
	healthy := conditions.Get(d, v1alpha1.HealthyCondition)
	switch {
	case s.settled.RejectedNow:
		pipeline.SetProgressing(d, v1alpha1.ReasonRollingBack, text+"\nrolling back to "+back)
	case err != nil && failure.Of(err).Waiting:
		pipeline.SetProgressing(d, failure.Of(err).Reason, text+"\n"+failure.Of(err).Error())
	case err != nil:
		pipeline.SetRetrying(d, v1alpha1.ReasonRollbackFailed, text+"\nrolling back to "+back+" failed: "+failure.Of(err).Error()+appliedText(s, err))
	case s.delivered.WaitsFor != "":
		pipeline.SetProgressing(d, v1alpha1.ReasonRollingBack, text+"\nrolling back to "+back+": "+s.delivered.WaitsFor)
	case s.settled.Health == nil || healthy == nil || healthy.Status == metav1.ConditionUnknown:
		pipeline.SetProgressing(d, v1alpha1.ReasonRollingBack, text+"\nrolled back to "+back+", which is not healthy yet"+s.unhealthyText())
	case healthy.Status == metav1.ConditionTrue:
		pipeline.SetStalled(d, v1alpha1.ReasonRevisionRejected, text+"\n"+back+" is applied and is kept from drifting"+stillGoing(s)+
			"; the rejected one is tried again when the source has another revision, the spec changes, or a reconcile is requested")
	default:
		pipeline.SetRetrying(d, v1alpha1.ReasonHealthFailed, text+"\n"+back+" is applied, and is not healthy"+s.unhealthyText())
	}
}

// unhealthyText says what is not healthy.
func (s *state) unhealthyText() string {
	if s.settled.Health == nil {
		return ""
	}
	return ": " + s.settled.Health.Message()
}
