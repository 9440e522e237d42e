// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/report"
	"github.com/satchel-dev/satchel/internal/controller/step"
)

// conditionOf says which condition tells of a step's failure.
var conditionOf = map[string]string{
	"source": v1alpha1.SourceReadyCondition, "load": v1alpha1.SourceReadyCondition,
	"convert": v1alpha1.ConvertedCondition,
	"plan":    v1alpha1.PlannedCondition, "preflight": v1alpha1.PlannedCondition, "dry-run": v1alpha1.PlannedCondition,
	"apply": v1alpha1.AppliedCondition, "prune": v1alpha1.AppliedCondition,
	"health": v1alpha1.HealthyCondition,
}

// updateStatus writes every condition and count of a deployment from what the
// steps found out, also when one of them failed.
func updateStatus(s *state, err error) {
	status := &s.object.Status
	markHandled(s.object)
	setPlan(s)
	setCounts(s)
	if s.due && len(s.desired) > 0 {
		status.Warnings = bounded(s.warnings)
	}
	setSourceReady(s)
	setReached(s)
	setFailed(s, err)
	setHealthy(s)
	setReady(s, err)
}

// markHandled keeps the generation and the request that were handled.
func markHandled(d *v1alpha1.BundleDeployment) {
	d.Status.ObservedGeneration = d.Generation
	if at := requested(d); at != "" {
		d.Status.LastHandledReconcileAt = at
	}
}

func setPlan(s *state) {
	if s.plan == nil {
		return
	}
	if s.plan.Quiet() && s.object.Status.Plan != nil && s.object.Status.Plan.Revision == s.revision() {
		return // what the plan of this revision was is more telling than that nothing is left to do
	}
	s.object.Status.Plan = &v1alpha1.PlanStatus{
		Revision: s.revision(),
		Create:   int32(s.plan.Count(plan.Create)),              //nolint:gosec // at most 25,000 objects
		Update:   int32(s.plan.Count(plan.Update, plan.Repair)), //nolint:gosec // at most 25,000 objects
		Delete:   int32(s.plan.Deletions()),                     //nolint:gosec // at most 25,000 objects
		Summary:  s.plan.Summary(),
	}
}

func setCounts(s *state) {
	looked := s
	if s.kept != nil {
		looked = s.kept
	}
	if looked.health == nil {
		return
	}
	s.object.Status.Objects = &v1alpha1.ObjectCounts{
		Applied:   int32(looked.health.Total),          //nolint:gosec // at most 25,000 objects
		Unhealthy: int32(len(looked.health.Unhealthy)), //nolint:gosec // at most 25,000 objects
	}
}

// mostWarnings bounds the warnings in a status.
const mostWarnings = 20

// bounded sorts warnings, drops repetitions and keeps so many as help.
func bounded(warnings []string) []string {
	sorted := slices.Compact(slices.Sorted(slices.Values(warnings)))
	if len(sorted) > mostWarnings {
		sorted = append(sorted[:mostWarnings-1:mostWarnings-1], fmt.Sprintf("and %d more", len(sorted)-mostWarnings+1))
	}
	for i := range sorted {
		sorted[i] = report.Shorten(sorted[i], 512)
	}
	return sorted
}

// setSourceReady tells of the source, also where its last artifact is still
// usable although it cannot be polled.
func setSourceReady(s *state) {
	if s.source == nil || s.artifact == nil {
		return
	}
	kind := v1alpha1.SourceReadyCondition
	if ready := readiness(s.source); ready != nil && ready.Status == metav1.ConditionFalse {
		report.Set(s.object, kind, metav1.ConditionFalse, ready.Reason, ready.Message)
		return
	}
	report.Set(s.object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "revision "+s.artifact.Revision)
}

func readiness(source *v1alpha1.BundleSource) *metav1.Condition {
	return conditions.Get(source, meta.ReadyCondition)
}

// setReached marks the steps that succeeded.
func setReached(s *state) {
	messages := map[string]string{
		v1alpha1.ConvertedCondition: fmt.Sprintf("%d objects as %s", len(s.desired), s.object.Status.Format),
		v1alpha1.PlannedCondition:   "the plan for " + s.revision() + " has no violations",
		v1alpha1.AppliedCondition:   "applied revision " + s.object.Status.LastAppliedRevision,
	}
	for _, kind := range []string{v1alpha1.ConvertedCondition, v1alpha1.PlannedCondition, v1alpha1.AppliedCondition} {
		if s.reached[kind] {
			report.Set(s.object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, messages[kind])
		}
	}
}

// setFailed marks the step that failed.
func setFailed(s *state, err error) {
	kind := conditionOf[step.Failed(err)]
	if kind == "" {
		return
	}
	f := judge(err)
	status := metav1.ConditionFalse
	if f.waiting {
		status = metav1.ConditionUnknown
	}
	report.Set(s.object, kind, status, f.reason, f.Error())
}

// setHealthy tells of the health of what is applied: this revision, or the last
// one while this one fails.
func setHealthy(s *state) {
	looked := s
	if s.kept != nil {
		looked = s.kept
	}
	if looked.health == nil {
		return
	}
	kind := v1alpha1.HealthyCondition
	if looked.health.Healthy() {
		report.Set(s.object, kind, metav1.ConditionTrue, v1alpha1.ReasonSucceeded,
			fmt.Sprintf("%d objects of revision %s are healthy", looked.health.Total, s.object.Status.LastAppliedRevision))
		return
	}
	status, reason := metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing
	if looked.overdue() || looked.health.Failed() {
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonHealthFailed
	}
	report.Set(s.object, kind, status, reason, looked.health.Message())
}

// overdue tells that the time to become healthy is over.
func (s *state) overdue() bool {
	since := s.object.Status.LastAppliedTime
	return since != nil && s.now.Sub(since.Time) > s.object.Spec.TimeoutOrDefault()
}

// setReady sums up; the first line that holds decides.
//
//	a step failed for good            Stalled
//	a step waits                      Progressing
//	a step failed                     Retrying
//	an apply is not finished          Progressing
//	objects are unhealthy             Progressing, Retrying when overdue or failed
//	else                              Ready
func setReady(s *state, err error) {
	d := s.object
	if err != nil {
		setUnready(s, judge(err))
		return
	}
	healthy := conditions.Get(d, v1alpha1.HealthyCondition)
	switch {
	case s.waitsFor != "":
		report.Progressing(d, v1alpha1.ReasonProgressing, s.waitsFor)
	case s.health == nil || healthy == nil:
		report.Progressing(d, v1alpha1.ReasonProgressing, "applied revision "+s.revision())
	case healthy.Status == metav1.ConditionTrue:
		report.Ready(d, v1alpha1.ReasonSucceeded, fmt.Sprintf("applied revision %s: %d objects, all healthy", s.revision(), s.health.Total))
	case healthy.Status == metav1.ConditionUnknown:
		report.Progressing(d, healthy.Reason, healthy.Message)
	default:
		report.Retrying(d, healthy.Reason, healthy.Message)
	}
}

func setUnready(s *state, f failure) {
	message := f.Error() + inForce(s)
	switch {
	case f.stalled:
		report.Stalled(s.object, f.reason, message)
	case f.waiting:
		report.Progressing(s.object, f.reason, message)
	default:
		report.Retrying(s.object, f.reason, message)
	}
}

// inForce says which revision goes on running while this one fails.
func inForce(s *state) string {
	last := s.object.Status.LastAppliedRevision
	if last == "" {
		return ""
	}
	text := "\nrevision " + last + " stays in force"
	switch {
	case s.careErr != nil:
		return text + ", but could not be compared with the cluster: " + judge(s.careErr).Error()
	case s.kept != nil && s.kept.health != nil && !s.kept.health.Healthy():
		return text + ", and is not healthy: " + s.kept.health.Message()
	case s.kept != nil:
		return text + " and is kept from drifting"
	}
	return text
}

// announce says, before the first write, what is under way.
func announce(s *state) {
	if s.keeping || s.plan.Quiet() {
		return
	}
	setPlan(s)
	setReached(s)
	setSourceReady(s)
	report.Set(s.object, meta.ReconcilingCondition, metav1.ConditionTrue, v1alpha1.ReasonProgressing,
		"applying revision "+s.revision()+": "+s.plan.Summary())
	if ready := conditions.Get(s.object, meta.ReadyCondition); ready == nil || s.object.Status.LastAppliedRevision != s.revision() {
		report.Set(s.object, meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonProgressing,
			"applying revision "+s.revision()+": "+s.plan.Summary())
	}
}

// reportRemoval tells how far the removal got.
func reportRemoval(s *state, err error) {
	markHandled(s.object)
	if err != nil {
		f := judge(err)
		if f.reason == v1alpha1.ReasonFailed {
			f.reason = v1alpha1.ReasonRemovalFailed
		}
		report.Retrying(s.object, f.reason, fmt.Sprintf("removing %d objects: %s", s.previous.Len(), f.Error()))
		return
	}
	report.Progressing(s.object, v1alpha1.ReasonRemoving, "waiting until these are gone: "+names(s.removed.Waiting))
}

// markSuspended keeps the status current while nothing is done.
func markSuspended(d *v1alpha1.BundleDeployment) {
	markHandled(d)
	conditions.Delete(d, meta.ReconcilingCondition)
	if conditions.Get(d, meta.ReadyCondition) == nil {
		report.Set(d, meta.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonSuspended,
			"suspended before the first revision was applied: set spec.suspend to false")
	}
}

func metaTime(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
