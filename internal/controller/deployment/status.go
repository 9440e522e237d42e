// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// updateStatus sets every condition and count of a deployment from the facts of the
// steps, also when one of them failed.
func updateStatus(s *state, err error) {
	markHandled(s.Object)
	setPlan(s)
	setCounts(s)
	setWarnings(s)
	setDrift(s)
	setCertificates(s)
	setSourceReady(s)
	setReached(s)
	setFailed(s, err)
	setPending(s)
	setApproval(s, err)
	setHealthy(s)
	beginRecord(s)
	setRemediation(s, err)
	setHistory(s, err)
	setReady(s, err)
}

// markHandled records the generation and the reconcile request that were handled.
func markHandled(d *v1alpha1.BundleDeployment) {
	d.Status.ObservedGeneration = d.Generation
	if at := pipeline.Requested(d); at != "" {
		d.Status.LastHandledReconcileAt = at
	}
}

// setSourceReady sets SourceReady, also if the source cannot be polled and its last
// artifact is used.
func setSourceReady(s *state) {
	if s.resolved.Source == nil || s.resolved.Artifact == nil {
		return
	}
	kind := v1alpha1.SourceReadyCondition
	if ready := s.resolved.Source.Ready; ready != nil && ready.Status == metav1.ConditionFalse {
		pipeline.SetCondition(s.Object, kind, metav1.ConditionFalse, ready.Reason, ready.Message)
		return
	}
	revision := s.resolved.Artifact.Revision
	if s.resolved.Rejected != nil {
		revision = s.resolved.Rejected.Revision
	}
	pipeline.SetCondition(s.Object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "revision "+revision)
}

// setReached sets the conditions of the steps that succeeded.
func setReached(s *state) {
	succeeded := []struct {
		reached       bool
		kind, message string
	}{
		{s.rendered.Converted, v1alpha1.ConvertedCondition, fmt.Sprintf("%d objects as %s", len(s.rendered.Desired), s.Object.Status.Format)},
		{s.decided.Accepted, v1alpha1.PlannedCondition, plannedMessage(s)},
		{s.delivered.Complete, v1alpha1.AppliedCondition, "applied revision " + s.Object.Status.LastAppliedRevision},
	}
	for _, step := range succeeded {
		if step.reached {
			pipeline.SetCondition(s.Object, step.kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, step.message)
		}
	}
}

// plannedMessage is the message of a plan without violations, with its warnings.
func plannedMessage(s *state) string {
	text := "the plan for " + s.resolved.Revision() + " has no violations"
	if s.decided.Plan != nil {
		text += skippedText(s.decided.Plan.Skipped)
	}
	if warnings := s.planWarnings(); len(warnings) > 0 {
		return text + ", and warns:\n" + strings.Join(warnings, "\n")
	}
	return text
}

// setFailed sets the condition of the step that failed.
func setFailed(s *state, err error) {
	kind := declared(err).condition
	if kind == "" {
		return
	}
	f := failure.Of(err)
	status := metav1.ConditionFalse
	if f.Waiting {
		status = metav1.ConditionUnknown
	}
	pipeline.SetCondition(s.Object, kind, status, f.Reason, f.Error())
}

// setPending sets the Applied condition of an unfinished apply.
func setPending(s *state) {
	if s.delivered.WaitsFor == "" {
		return
	}
	status := metav1.ConditionUnknown
	reason, over := s.waiting()
	if over {
		status = metav1.ConditionFalse
	}
	pipeline.SetCondition(s.Object, v1alpha1.AppliedCondition, status, reason, s.delivered.WaitsFor)
}

// waitedLong tells that an apply has waited longer than the timeout. Turns with a budget are judged by their number; see
// endTurn.
func (s *state) waitedLong() bool {
	return s.delivered.Cut == stage.Uncut && s.Now.Sub(s.note.Applying.Waits) > s.Object.Spec.TimeoutOrDefault()
}

// setHealthy sets the health of the applied revision: this one, or the last one while
// this one fails.
func setHealthy(s *state) {
	looked := s
	if s.kept != nil {
		looked = s.kept
	}
	if looked.settled.Health == nil {
		return
	}
	kind := v1alpha1.HealthyCondition
	if looked.settled.Health.Healthy() && looked.delivered.Hooks.Waits != "" {
		pipeline.SetCondition(s.Object, kind, metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing, looked.delivered.Hooks.Waits)
		return
	}
	if looked.delivered.Hooks.Failed {
		return // setFailed has set it
	}
	if left := len(looked.decided.LeftOut); left > 0 && looked.settled.Health.Healthy() {
		pipeline.SetCondition(s.Object, kind, metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing,
			fmt.Sprintf("the health of %d objects of revision %s cannot be checked: %s", left, s.Object.Status.LastAppliedRevision, looked.decided.LeftOut[0]))
		return
	}
	if looked.settled.Health.Healthy() {
		pipeline.SetCondition(s.Object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded,
			fmt.Sprintf("%d objects of revision %s: %s", looked.note.Health.Total, s.Object.Status.LastAppliedRevision, s.healthyWords()))
		return
	}
	status, reason := metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing
	if looked.overdue() || looked.settled.Health.Failed() {
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonHealthFailed
	}
	pipeline.SetCondition(s.Object, kind, status, reason, looked.settled.Health.Message())
}

// overdue tells that the timeout to become healthy is over. It counts from the last
// write, including repairs. A missing object was deleted after it had been applied, and
// is recreated first. An unchanged object that was healthy before has only the short
// time of recovery.
func (s *state) overdue() bool {
	if !s.note.Health.UnhealthySince.IsZero() && !s.note.Health.Missing && s.Now.Sub(s.note.Health.UnhealthySince) >= recovery {
		return true
	}
	since := s.Object.Status.LastAppliedTime
	return since != nil && !s.note.Health.Missing && s.Now.Sub(since.Time) > s.Object.Spec.TimeoutOrDefault() &&
		s.Now.Sub(s.note.Applying.Wrote) > s.Object.Spec.TimeoutOrDefault() && s.Now.Sub(s.triedAgain()) > s.Object.Spec.TimeoutOrDefault()
}

// recovery is how long an object that was healthy may be unhealthy before that is
// reported: the normal replacement of a Pod is no failure.
const recovery = 2 * time.Second

// setReady sets Ready, Reconciling and Stalled; the first line that holds decides.
//
//	a revision is rejected            see setRolledBack
//	the plan waits for an approval    see setAwaiting
//	a step failed for good            Stalled
//	a step waits                      Progressing
//	a step failed                     Retrying
//	an apply is not finished          Progressing, Retrying when it takes too long
//	objects are unhealthy             Progressing, Retrying when overdue or failed
//	else                              Ready
func setReady(s *state, err error) {
	d := s.Object
	if s.settled.RejectedNow || s.resolved.Rejected != nil {
		setRolledBack(s, err)
		return
	}
	if approval.AwaitsApproval(err) {
		setAwaiting(s, err)
		return
	}
	if err != nil {
		setUnready(s, err)
		return
	}
	healthy := conditions.Get(d, v1alpha1.HealthyCondition)
	reason, over := s.waiting()
	switch {
	case s.delivered.WaitsFor != "" && over:
		pipeline.SetRetrying(d, reason, s.delivered.WaitsFor+s.remedy())
	case s.delivered.WaitsFor != "":
		pipeline.SetProgressing(d, reason, s.delivered.WaitsFor)
	case s.settled.Health == nil || healthy == nil:
		pipeline.SetProgressing(d, v1alpha1.ReasonProgressing, "applied revision "+s.resolved.Revision())
	case healthy.Status == metav1.ConditionTrue:
		pipeline.SetReady(d, v1alpha1.ReasonSucceeded,
			fmt.Sprintf("applied revision %s: %d objects, %s%s", s.resolved.Revision(), s.note.Health.Total, s.healthyWords(), stillGoing(s)))
	case healthy.Status == metav1.ConditionUnknown:
		pipeline.SetProgressing(d, healthy.Reason, healthy.Message)
	default:
		pipeline.SetRetrying(d, healthy.Reason, healthy.Message+s.remedy())
	}
}

// stillGoing names objects that left the bundle and still exist.
func stillGoing(s *state) string {
	if held := s.note.Planned.Held; held != nil {
		return fmt.Sprintf("; %d objects that left the bundle are kept: see %s", len(held.Objects), v1alpha1.ApprovalPendingCondition)
	}
	if s.delivered.Pruned == nil || len(s.delivered.Pruned.Waiting) == 0 {
		return ""
	}
	return "; objects that left the bundle still exist: " + pipeline.JoinNames(s.delivered.Pruned.Waiting)
}

func setUnready(s *state, err error) {
	f := failure.Of(err)
	message := f.Error() + appliedText(s, err)
	switch {
	case f.Stalled:
		pipeline.SetStalled(s.Object, f.Reason, message)
	case f.Waiting:
		pipeline.SetProgressing(s.Object, f.Reason, message)
	default:
		pipeline.SetRetrying(s.Object, f.Reason, message+s.remedy())
	}
}

// appliedText says which revision stays applied while this one fails in a step.
func appliedText(s *state, err error) string {
	failed := pipeline.FailedStep(err)
	last := s.Object.Status.LastAppliedRevision
	switch {
	case last == "":
		return ""
	case last == s.resolved.Revision() && s.kept == nil:
		return "" // it is the one that fails
	case failed == stepApply, failed == stepPruneFirst:
		return "\nuntil this succeeds, some objects stay at revision " + last
	}
	text := "\nrevision " + last + " stays applied"
	switch {
	case s.keepErr != nil:
		return text + ", but could not be compared with the cluster: " + failure.Of(s.keepErr).Error()
	case s.kept != nil:
		return text + s.keptText(failure.Of(err).Error())
	}
	return text
}

// announce sets Reconciling, before the first write.
func announce(s *state) {
	if s.Keeping || !s.decided.Writes() || s.repeats() {
		return
	}
	setPlan(s)
	setReached(s)
	setSourceReady(s)
	conditions.Delete(s.Object, meta.StalledCondition)
	pipeline.SetCondition(s.Object, meta.ReconcilingCondition, metav1.ConditionTrue, v1alpha1.ReasonProgressing,
		"applying revision "+s.resolved.Revision()+": "+s.decided.Plan.Summary())
	if ready := conditions.Get(s.Object, meta.ReadyCondition); ready == nil || s.Object.Status.LastAppliedRevision != s.resolved.Revision() {
		pipeline.SetCondition(s.Object, meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonProgressing,
			"applying revision "+s.resolved.Revision()+": "+s.decided.Plan.Summary())
	}
}

// reportRemoval sets the conditions of an unfinished removal.
func reportRemoval(s *state, err error) {
	markHandled(s.Object)
	if err != nil {
		f := failure.Of(err)
		if f.Reason == v1alpha1.ReasonFailed {
			f.Reason = v1alpha1.ReasonRemovalFailed
		}
		say := pipeline.SetRetrying
		if f.Stalled {
			say = pipeline.SetStalled
		}
		say(s.Object, f.Reason, fmt.Sprintf("removing %d objects: %s", s.listed.Inventory.Len(), f.Error()))
		return
	}
	for _, waits := range []string{s.delivered.Hooks.Waits, s.delivered.WaitsFor} {
		if waits != "" {
			pipeline.SetProgressing(s.Object, v1alpha1.ReasonRemoving, waits)
			return
		}
	}
	pipeline.SetProgressing(s.Object, v1alpha1.ReasonRemoving, "waiting until these are gone: "+pipeline.JoinNames(s.delivered.Removed.Waiting))
}

// markSuspended updates the status of a suspended deployment.
func markSuspended(d *v1alpha1.BundleDeployment) {
	markHandled(d)
	conditions.Delete(d, meta.ReconcilingCondition)
	if conditions.Get(d, meta.ReadyCondition) == nil {
		pipeline.SetCondition(d, meta.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonSuspended,
			"suspended before the first revision was applied: set spec.suspend to false")
	}
}
