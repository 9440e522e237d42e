// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/abandon"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/plural"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Update sets every condition and count of a deployment from the facts of the
// steps, also when one of them failed.
func Update(in *Input, err error) {
	MarkHandled(in.Object)
	setOriginRevision(in)
	setPlan(in)
	setCounts(in)
	setWarnings(in)
	setDrift(in)
	setCertificates(in)
	in.Resolved.SetCatalogConditions(in.Object)
	setSourceReady(in)
	setReached(in)
	setFailed(in, err)
	setPending(in)
	setApproval(in, err)
	setHealthy(in)
	beginRecord(in)
	setRemediation(in, err)
	setHistory(in, err)
	setReady(in, err)
}

// MarkHandled records the generation and the reconcile request that were handled.
func MarkHandled(d *v1alpha1.BundleDeployment) {
	d.Status.ObservedGeneration = d.Generation
	if at := pipeline.Requested(d); at != "" {
		d.Status.LastHandledReconcileAt = at
	}
}

// setOriginRevision follows the origin of the applied revision. It may change while the content does not, as by a commit to
// other files; then nothing else in the status changes.
func setOriginRevision(in *Input) {
	status, now := &in.Object.Status, in.Resolved.OriginRevision
	if now != "" && status.Applied.Revision != "" && status.Applied.Revision == in.Resolved.Revision() {
		status.Applied.OriginRevision = now
	}
}

// setSourceReady sets SourceReady, also if the source cannot be polled and its last
// artifact is used.
func setSourceReady(in *Input) {
	if in.Resolved.Source == nil || in.Resolved.Artifact == nil {
		return
	}
	kind := v1alpha1.SourceReadyCondition
	if ready := in.Resolved.Source.Ready; ready != nil && ready.Status == metav1.ConditionFalse {
		pipeline.SetCondition(in.Object, kind, metav1.ConditionFalse, ready.Reason, ready.Message)
		return
	}
	revision := in.Resolved.Artifact.Revision
	if in.Resolved.Rejected != nil {
		revision = in.Resolved.Rejected.Revision
	}
	pipeline.SetCondition(in.Object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "revision "+revision)
}

// setReached sets the conditions of the steps that succeeded.
func setReached(in *Input) {
	succeeded := []struct {
		reached       bool
		kind, message string
	}{
		{in.Rendered.Converted, v1alpha1.ConvertedCondition, fmt.Sprintf("%s as %s", plural.Of(len(in.Rendered.Desired), "object"), in.Object.Status.Format)},
		{in.Decided.Accepted, v1alpha1.PlannedCondition, plannedMessage(in)},
		{in.Delivered.Complete, v1alpha1.AppliedCondition, "applied revision " + in.Object.Status.Applied.Revision},
	}
	for _, step := range succeeded {
		if step.reached {
			pipeline.SetCondition(in.Object, step.kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, step.message)
		}
	}
}

// plannedMessage is the message of a plan without violations, with its warnings.
func plannedMessage(in *Input) string {
	text := "the plan for " + in.Resolved.Revision() + " has no violations"
	if in.Decided.Plan != nil {
		text += skippedText(in.Decided.Plan.Skipped)
	}
	if warnings := in.planWarnings(); len(warnings) > 0 {
		return text + ", and warns:\n" + strings.Join(warnings, "\n")
	}
	return text
}

// setFailed sets the condition of the step that failed.
func setFailed(in *Input, err error) {
	kind := in.Condition
	if kind == "" {
		return
	}
	f := failure.Of(err)
	status := metav1.ConditionFalse
	if f.Waiting {
		status = metav1.ConditionUnknown
	}
	pipeline.SetCondition(in.Object, kind, status, f.Reason, f.Error())
}

// setPending sets the Applied condition of an unfinished apply.
func setPending(in *Input) {
	if in.Delivered.WaitsFor == "" {
		return
	}
	status := metav1.ConditionUnknown
	reason, over := in.waiting()
	if over {
		status = metav1.ConditionFalse
	}
	pipeline.SetCondition(in.Object, v1alpha1.AppliedCondition, status, reason, in.Delivered.WaitsFor)
}

// waitedLong tells that an apply has waited longer than the timeout. Turns with a budget are judged by their number; see
// endTurn.
func (in *Input) waitedLong() bool {
	return in.Delivered.Cut == stage.Uncut && in.Now.Sub(in.Note.Applying.Waits) > effective.Timeout(&in.Object.Spec)
}

// setHealthy sets the health of the applied revision: this one, or the last one while
// this one fails.
func setHealthy(in *Input) {
	looked := in
	if in.Kept != nil {
		looked = in.Kept
	}
	if looked.Settled.Health == nil {
		return
	}
	kind := v1alpha1.HealthyCondition
	if looked.Settled.Health.Healthy() && looked.Delivered.Hooks.Waits != "" {
		pipeline.SetCondition(in.Object, kind, metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing, looked.Delivered.Hooks.Waits)
		return
	}
	if looked.Delivered.Hooks.Failed {
		return // setFailed has set it
	}
	if leftOut := looked.leftOut(); len(leftOut) > 0 && looked.Settled.Health.Healthy() {
		pipeline.SetCondition(in.Object, kind, metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing,
			fmt.Sprintf("the health of %s of revision %s cannot be checked: %s", plural.Of(len(leftOut), "object"), in.Object.Status.Applied.Revision, leftOut[0]))
		return
	}
	if looked.Settled.Health.Healthy() {
		pipeline.SetCondition(in.Object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded,
			fmt.Sprintf("%s of revision %s: %s", plural.Of(looked.Note.Health.Total, "object"), in.Object.Status.Applied.Revision, in.healthyWords()))
		return
	}
	status, reason := metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing
	if looked.overdue() || looked.Settled.Health.Failed() {
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonHealthFailed
	}
	pipeline.SetCondition(in.Object, kind, status, reason, looked.Settled.Health.Message())
}

// overdue tells that the timeout to become healthy is over. It counts from the last
// write, including repairs. A missing object was deleted after it had been applied, and
// is recreated first. An unchanged object that was healthy before has only the short
// time of recovery.
func (in *Input) overdue() bool {
	if !in.Note.Health.UnhealthySince.IsZero() && !in.Note.Health.Missing && in.Now.Sub(in.Note.Health.UnhealthySince) >= recovery {
		return true
	}
	since := in.Object.Status.Applied.CompletionTime
	return since != nil && !in.Note.Health.Missing && in.Now.Sub(since.Time) > effective.Timeout(&in.Object.Spec) &&
		in.Now.Sub(in.Note.Applying.Wrote) > effective.Timeout(&in.Object.Spec) && in.Now.Sub(in.triedAgain()) > effective.Timeout(&in.Object.Spec)
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
func setReady(in *Input, err error) {
	d := in.Object
	if in.Settled.RejectedNow || in.Resolved.Rejected != nil {
		setRolledBack(in, err)
		return
	}
	if approval.AwaitsApproval(err) {
		setAwaiting(in, err)
		return
	}
	if err != nil {
		setUnready(in, err)
		return
	}
	healthy := conditions.Get(d, v1alpha1.HealthyCondition)
	reason, over := in.waiting()
	switch {
	case in.Delivered.WaitsFor != "" && over:
		pipeline.SetRetrying(d, reason, in.Delivered.WaitsFor+in.remedy())
	case in.Delivered.WaitsFor != "":
		pipeline.SetProgressing(d, reason, in.Delivered.WaitsFor)
	case in.Settled.Health == nil || healthy == nil:
		pipeline.SetProgressing(d, v1alpha1.ReasonProgressing, "applied revision "+in.Resolved.Revision())
	case healthy.Status == metav1.ConditionTrue:
		pipeline.SetReady(d, v1alpha1.ReasonSucceeded,
			fmt.Sprintf("applied revision %s: %s, %s%s", in.Resolved.Revision(), plural.Of(in.Note.Health.Total, "object"), in.healthyWords(), stillGoing(in)))
	case healthy.Status == metav1.ConditionUnknown:
		pipeline.SetProgressing(d, healthy.Reason, healthy.Message)
	default:
		pipeline.SetRetrying(d, healthy.Reason, healthy.Message+in.remedy())
	}
}

// stillGoing names objects that left the bundle and still exist.
func stillGoing(in *Input) string {
	if held := in.Note.Planned.Held; held != nil {
		return fmt.Sprintf("; %s that left the bundle %s kept: see %s", plural.Of(len(held.Objects), "object"), plural.Choose(len(held.Objects), "is", "are"), v1alpha1.ApprovalPendingCondition)
	}
	if in.Delivered.Pruned == nil || len(in.Delivered.Pruned.Waiting) == 0 {
		return ""
	}
	return "; objects that left the bundle still exist: " + pipeline.JoinNames(in.Delivered.Pruned.Waiting)
}

func setUnready(in *Input, err error) {
	f := failure.Of(err)
	message := f.Error() + appliedText(in, err)
	switch {
	case f.Stalled:
		pipeline.SetStalled(in.Object, f.Reason, message)
	case f.Waiting:
		pipeline.SetProgressing(in.Object, f.Reason, message)
	default:
		pipeline.SetRetrying(in.Object, f.Reason, message+in.remedy())
	}
}

// appliedText says which revision stays applied while this one fails in a step.
func appliedText(in *Input, err error) string {
	failed := pipeline.FailedStep(err)
	last := in.Object.Status.Applied.Revision
	switch {
	case last == "":
		return ""
	case last == in.Resolved.Revision() && in.Kept == nil:
		return "" // it is the one that fails
	case last == in.Resolved.Revision() && (failed == stage.StepApply || failed == stage.StepPruneFirst):
		return "" // with another spec
	case failed == stage.StepApply, failed == stage.StepPruneFirst:
		return "\nuntil this succeeds, some objects stay at revision " + last
	}
	text := "\nrevision " + last + " stays applied"
	switch {
	case in.KeepErr != nil:
		return text + ", but could not be compared with the cluster: " + failure.Of(in.KeepErr).Error()
	case in.Kept != nil:
		return text + in.keptText(failure.Of(err).Error())
	case in.ComparisonSkipped:
		return text + " and is kept from drifting"
	}
	return text
}

// Announce sets Reconciling, before the first write.
func Announce(in *Input) {
	if in.Keeping || !in.Decided.Writes() || in.repeats() {
		return
	}
	setPlan(in)
	setReached(in)
	setSourceReady(in)
	conditions.Delete(in.Object, meta.StalledCondition)
	pipeline.SetCondition(in.Object, meta.ReconcilingCondition, metav1.ConditionTrue, v1alpha1.ReasonProgressing,
		"applying revision "+in.Resolved.Revision()+": "+in.Decided.Plan.Summary())
	if ready := conditions.Get(in.Object, meta.ReadyCondition); ready == nil || in.Object.Status.Applied.Revision != in.Resolved.Revision() {
		pipeline.SetCondition(in.Object, meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonProgressing,
			"applying revision "+in.Resolved.Revision()+": "+in.Decided.Plan.Summary())
	}
}

// ReportRemoval sets the conditions of an unfinished removal. If it cannot go on, the wait says why and until when.
func ReportRemoval(in *Input, wait *abandon.Wait, err error) {
	MarkHandled(in.Object)
	if in.Delivered.Cut != stage.CutIdle { // which says nothing about what is missing
		conditions.Delete(in.Object, v1alpha1.RemovalBlockedCondition)
	}
	if err != nil {
		reportFailedRemoval(in.Object, in.Listed.Current().Len(), wait, failure.Of(err))
		return
	}
	for _, waits := range []string{in.Delivered.Hooks.Waits, in.Delivered.WaitsFor} {
		if waits != "" {
			pipeline.SetProgressing(in.Object, v1alpha1.ReasonRemoving, waits)
			return
		}
	}
	pipeline.SetProgressing(in.Object, v1alpha1.ReasonRemoving, "waiting until these are gone: "+pipeline.JoinNames(in.Delivered.Removed.Waiting))
}

// reportFailedRemoval sets the conditions of a removal that failed with so many objects left.
func reportFailedRemoval(d *v1alpha1.BundleDeployment, left int, wait *abandon.Wait, f failure.Error) {
	message := fmt.Sprintf("removing %s: %s", plural.Of(left, "object"), f.Error())
	if f.Reason == v1alpha1.ReasonFailed {
		f.Reason = v1alpha1.ReasonRemovalFailed
	}
	if wait != nil {
		pipeline.SetConditionSince(d, v1alpha1.RemovalBlockedCondition, wait.Reason, wait.Message, wait.Since)
		message += "\n" + wait.Message
		if wait.Reason == v1alpha1.ReasonAccountNotFound { // which is why objects cannot be removed
			f.Reason = wait.Reason
			message = fmt.Sprintf("removing %s: %s\n%s", plural.Of(left, "object"), wait.Message, f.Error())
		}
	}
	if f.Stalled {
		pipeline.SetStalled(d, f.Reason, message)
		return
	}
	pipeline.SetRetrying(d, f.Reason, message)
}

// waiting says why an unfinished apply waits, and whether it has timed out.
func (in *Input) waiting() (reason string, over bool) {
	over = in.waitedLong() || in.Delivered.Phase != nil && in.Delivered.Phase.Report.Failed()
	switch {
	case in.Delivered.Phase != nil && over:
		return v1alpha1.ReasonHealthFailed, true
	case in.Delivered.Phase != nil:
		return v1alpha1.ReasonHealthProgressing, false
	case over:
		return v1alpha1.ReasonApplyFailed, true
	}
	return v1alpha1.ReasonProgressing, false
}

// repeats tells that the same revision failed before with the same spec. Its failure
// stays in the status until an attempt succeeds.
func (in *Input) repeats() bool {
	return conditions.IsFalse(in.Before, meta.ReadyCondition) && in.Resolved.SameAsBefore(in.Subject)
}
