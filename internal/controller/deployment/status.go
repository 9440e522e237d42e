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
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// updateStatus sets every condition and count of a deployment from the facts of the
// steps, also when one of them failed.
func updateStatus(s *state, err error) {
	markHandled(s.object)
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
	if s.resolved.source == nil || s.resolved.artifact == nil {
		return
	}
	kind := v1alpha1.SourceReadyCondition
	if ready := s.resolved.source.Ready; ready != nil && ready.Status == metav1.ConditionFalse {
		pipeline.SetCondition(s.object, kind, metav1.ConditionFalse, ready.Reason, ready.Message)
		return
	}
	revision := s.resolved.artifact.Revision
	if s.resolved.rejected != nil {
		revision = s.resolved.rejected.Revision
	}
	pipeline.SetCondition(s.object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "revision "+revision)
}

// setReached sets the conditions of the steps that succeeded.
func setReached(s *state) {
	messages := map[string]string{
		v1alpha1.ConvertedCondition: fmt.Sprintf("%d objects as %s", len(s.rendered.desired), s.object.Status.Format),
		v1alpha1.PlannedCondition:   plannedMessage(s),
		v1alpha1.AppliedCondition:   "applied revision " + s.object.Status.LastAppliedRevision,
	}
	for _, kind := range []string{v1alpha1.ConvertedCondition, v1alpha1.PlannedCondition, v1alpha1.AppliedCondition} {
		if s.reached[kind] {
			pipeline.SetCondition(s.object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, messages[kind])
		}
	}
}

// plannedMessage is the message of a plan without violations, with its warnings.
func plannedMessage(s *state) string {
	text := "the plan for " + s.revision() + " has no violations"
	if s.decided.plan != nil {
		text += skippedText(s.decided.plan.Skipped)
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
	pipeline.SetCondition(s.object, kind, status, f.Reason, f.Error())
}

// setPending sets the Applied condition of an unfinished apply.
func setPending(s *state) {
	if s.delivered.waitsFor == "" {
		return
	}
	status := metav1.ConditionUnknown
	reason, over := s.waiting()
	if over {
		status = metav1.ConditionFalse
	}
	pipeline.SetCondition(s.object, v1alpha1.AppliedCondition, status, reason, s.delivered.waitsFor)
}

// waitedLong tells that an apply has waited longer than the timeout. Turns with a budget are judged by their number; see
// endTurn.
func (s *state) waitedLong() bool {
	return s.delivered.cut == uncut && s.now.Sub(s.note.applying.waits) > s.object.Spec.TimeoutOrDefault()
}

// setHealthy sets the health of the applied revision: this one, or the last one while
// this one fails.
func setHealthy(s *state) {
	looked := s
	if s.kept != nil {
		looked = s.kept
	}
	if looked.settled.health == nil {
		return
	}
	kind := v1alpha1.HealthyCondition
	if looked.settled.health.Healthy() && looked.settled.hookWaits != "" {
		pipeline.SetCondition(s.object, kind, metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing, looked.settled.hookWaits)
		return
	}
	if looked.settled.hookFailed {
		return // setFailed has set it
	}
	if left := len(looked.decided.leftOut); left > 0 && looked.settled.health.Healthy() {
		pipeline.SetCondition(s.object, kind, metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing,
			fmt.Sprintf("the health of %d objects of revision %s cannot be checked: %s", left, s.object.Status.LastAppliedRevision, looked.decided.leftOut[0]))
		return
	}
	if looked.settled.health.Healthy() {
		pipeline.SetCondition(s.object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded,
			fmt.Sprintf("%d objects of revision %s: %s", looked.note.health.total, s.object.Status.LastAppliedRevision, s.healthyWords()))
		return
	}
	status, reason := metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing
	if looked.overdue() || looked.settled.health.Failed() {
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonHealthFailed
	}
	pipeline.SetCondition(s.object, kind, status, reason, looked.settled.health.Message())
}

// overdue tells that the timeout to become healthy is over. It counts from the last
// write, including repairs. A missing object was deleted after it had been applied, and
// is recreated first. An unchanged object that was healthy before has only the short
// time of recovery.
func (s *state) overdue() bool {
	if !s.note.health.unhealthySince.IsZero() && !s.note.health.missing && s.now.Sub(s.note.health.unhealthySince) >= recovery {
		return true
	}
	since := s.object.Status.LastAppliedTime
	return since != nil && !s.note.health.missing && s.now.Sub(since.Time) > s.object.Spec.TimeoutOrDefault() &&
		s.now.Sub(s.note.applying.wrote) > s.object.Spec.TimeoutOrDefault() && s.now.Sub(s.triedAgain()) > s.object.Spec.TimeoutOrDefault()
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
	d := s.object
	if s.settled.rejectedNow || s.resolved.rejected != nil {
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
	case s.delivered.waitsFor != "" && over:
		pipeline.SetRetrying(d, reason, s.delivered.waitsFor+s.remedy())
	case s.delivered.waitsFor != "":
		pipeline.SetProgressing(d, reason, s.delivered.waitsFor)
	case s.settled.health == nil || healthy == nil:
		pipeline.SetProgressing(d, v1alpha1.ReasonProgressing, "applied revision "+s.revision())
	case healthy.Status == metav1.ConditionTrue:
		pipeline.SetReady(d, v1alpha1.ReasonSucceeded,
			fmt.Sprintf("applied revision %s: %d objects, %s%s", s.revision(), s.note.health.total, s.healthyWords(), stillGoing(s)))
	case healthy.Status == metav1.ConditionUnknown:
		pipeline.SetProgressing(d, healthy.Reason, healthy.Message)
	default:
		pipeline.SetRetrying(d, healthy.Reason, healthy.Message+s.remedy())
	}
}

// stillGoing names objects that left the bundle and still exist.
func stillGoing(s *state) string {
	if held := s.note.planned.held; held != nil {
		return fmt.Sprintf("; %d objects that left the bundle are kept: see %s", len(held.Objects), v1alpha1.ApprovalPendingCondition)
	}
	if s.delivered.pruned == nil || len(s.delivered.pruned.Waiting) == 0 {
		return ""
	}
	return "; objects that left the bundle still exist: " + pipeline.JoinNames(s.delivered.pruned.Waiting)
}

func setUnready(s *state, err error) {
	f := failure.Of(err)
	message := f.Error() + appliedText(s, err)
	switch {
	case f.Stalled:
		pipeline.SetStalled(s.object, f.Reason, message)
	case f.Waiting:
		pipeline.SetProgressing(s.object, f.Reason, message)
	default:
		pipeline.SetRetrying(s.object, f.Reason, message+s.remedy())
	}
}

// appliedText says which revision stays applied while this one fails in a step.
func appliedText(s *state, err error) string {
	failed := pipeline.FailedStep(err)
	last := s.object.Status.LastAppliedRevision
	switch {
	case last == "":
		return ""
	case last == s.revision() && s.kept == nil:
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
	if s.keeping || !s.writes() || s.repeats() {
		return
	}
	setPlan(s)
	setReached(s)
	setSourceReady(s)
	conditions.Delete(s.object, meta.StalledCondition)
	pipeline.SetCondition(s.object, meta.ReconcilingCondition, metav1.ConditionTrue, v1alpha1.ReasonProgressing,
		"applying revision "+s.revision()+": "+s.decided.plan.Summary())
	if ready := conditions.Get(s.object, meta.ReadyCondition); ready == nil || s.object.Status.LastAppliedRevision != s.revision() {
		pipeline.SetCondition(s.object, meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonProgressing,
			"applying revision "+s.revision()+": "+s.decided.plan.Summary())
	}
}

// reportRemoval sets the conditions of an unfinished removal.
func reportRemoval(s *state, err error) {
	markHandled(s.object)
	if err != nil {
		f := failure.Of(err)
		if f.Reason == v1alpha1.ReasonFailed {
			f.Reason = v1alpha1.ReasonRemovalFailed
		}
		say := pipeline.SetRetrying
		if f.Stalled {
			say = pipeline.SetStalled
		}
		say(s.object, f.Reason, fmt.Sprintf("removing %d objects: %s", s.listed.inventory.Len(), f.Error()))
		return
	}
	for _, waits := range []string{s.settled.hookWaits, s.delivered.waitsFor} {
		if waits != "" {
			pipeline.SetProgressing(s.object, v1alpha1.ReasonRemoving, waits)
			return
		}
	}
	pipeline.SetProgressing(s.object, v1alpha1.ReasonRemoving, "waiting until these are gone: "+pipeline.JoinNames(s.delivered.removed.Waiting))
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
