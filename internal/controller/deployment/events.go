// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// emit emits events for what this reconcile changed; none if nothing changed.
func (r *Reconciler) emit(s *state) {
	r.emitRecovered(s)
	r.emitPlanWarnings(s)
	r.emitObjectWarnings(s)
	r.emitApplied(s)
	if s.kept != nil {
		r.emitDrift(s.kept)
	}
	r.emitDriftFound(s)
	r.emitPruned(s)
	r.emitRejected(s)
	r.emitApproval(s)
	r.emitCertificates(s)
	r.emitReady(s.Before, s.Object)
}

// emitPlanWarnings emits the warnings of the plan, such as an unsafe upgrade of CRDs
// that is allowed: once, while the status holds the warning.
func (r *Reconciler) emitPlanWarnings(s *state) {
	if fresh := s.fresh(s.planWarnings(), nil); fresh != "" {
		r.Events.Eventf(s.Object, nil, corev1.EventTypeWarning, "PlanWarning", "Plan", "%s", fresh)
	}
}

// emitObjectWarnings emits the warnings of the API server and of the conversion: once,
// while the status holds the warning.
func (r *Reconciler) emitObjectWarnings(s *state) {
	if fresh := s.fresh(s.Object.Status.Warnings, s.planWarnings()); fresh != "" {
		r.Events.Eventf(s.Object, nil, corev1.EventTypeWarning, "ObjectWarning", "Apply", "%s", fresh)
	}
}

// fresh joins the warnings that the status did not hold before, without those of the
// second list, to the message of an event; "" for none.
func (s *state) fresh(warnings, without []string) string {
	left := slices.DeleteFunc(slices.Clone(warnings), func(warning string) bool {
		return slices.Contains(s.Before.Status.Warnings, warning) || slices.Contains(without, warning)
	})
	return strings.Join(left, "\n")
}

func (r *Reconciler) emitApplied(s *state) {
	r.emitRepaired(s, s.delivered.Repaired.Result())
	if s.delivered.Applied == nil {
		return
	}
	created, updated := s.delivered.Applied.Count(apply.Created), s.delivered.Applied.Count(apply.Updated)
	r.emitAdopted(s)
	r.emitRecreated(s)
	switch was, is := s.Before.Status.LastAppliedRevision, s.Object.Status.LastAppliedRevision; {
	case was == is:
	case was == "":
		r.normal(s, "Installed", "Apply", fmt.Sprintf("applied revision %s: %d objects created, %d updated", s.resolved.Revision(), created, updated))
	default:
		r.normal(s, "Upgraded", "Apply", fmt.Sprintf("upgraded from revision %s to %s: %d objects created, %d updated", was, is, created, updated))
	}
	r.emitDrift(s)
}

// emitAdopted names the adopted objects.
func (r *Reconciler) emitAdopted(s *state) {
	var adopted []string
	for _, outcome := range s.delivered.Applied.Outcomes {
		if outcome.Kind == apply.Adopted {
			adopted = append(adopted, fmt.Sprintf("%s, which %s", outcome.ID, outcome.Reason))
		}
	}
	if len(adopted) > 0 {
		r.normal(s, "Adopted", "Apply", fmt.Sprintf("adopted %d objects: %s", len(adopted), strings.Join(adopted, "; ")))
	}
}

// emitRecreated names objects that were deleted because of changes to immutable fields.
func (r *Reconciler) emitRecreated(s *state) {
	var recreated []inventory.ID
	for _, outcome := range s.delivered.Applied.Outcomes {
		if outcome.Recreates() {
			recreated = append(recreated, outcome.ID)
		}
	}
	if len(recreated) > 0 {
		r.normal(s, "Recreated", "Apply", fmt.Sprintf("deleted %d objects to recreate them, since immutable fields of them change: %s", len(recreated), pipeline.JoinNames(recreated)))
	}
}

// emitDrift names the objects with corrected drift: those changed or deleted by another
// client.
func (r *Reconciler) emitDrift(s *state) {
	r.emitRepaired(s, s.delivered.Applied)
}

func (r *Reconciler) emitRepaired(s *state, result *apply.Result) {
	if result == nil {
		return
	}
	var repaired []string
	for _, outcome := range result.Outcomes {
		if outcome.Kind == apply.Repaired {
			repaired = append(repaired, outcome.ID.String())
		}
	}
	if len(repaired) > 0 {
		r.normal(s, "DriftCorrected", "Apply", "restored objects that another client had changed: "+strings.Join(repaired, ", "))
	}
}

// emitRejected emits that a revision was rejected and the last healthy one is rolled
// back to. Ready tells when that is applied.
func (r *Reconciler) emitRejected(s *state) {
	if s.settled.RejectedNow {
		r.Events.Eventf(s.Object, nil, corev1.EventTypeWarning, "RollingBack", "Remediate", "%s",
			"rolling back to revision "+s.Object.Status.LastHealthyArtifact.Revision+": "+s.rejection())
	}
}

func (r *Reconciler) emitPruned(s *state) {
	if s.delivered.Pruned == nil {
		return
	}
	if deleted := s.delivered.Pruned.DeletedIDs; len(deleted) > 0 {
		r.normal(s, "Pruned", "Prune", fmt.Sprintf("deleted %d objects that left the bundle: %s", len(deleted), pipeline.JoinNames(deleted)))
	}
	r.notes(s, "Prune", s.delivered.Pruned.Notes)
}

// emitKept names the objects that a removal keeps on purpose.
func (r *Reconciler) emitKept(s *state) {
	if s.delivered.Removed == nil {
		return
	}
	r.notes(s, "Remove", s.delivered.Removed.Notes)
	for _, note := range s.delivered.Removed.Cleared {
		r.normal(s, "WebhookDeleted", "Remove", note)
	}
}

// mostNotes is how many objects have an event of their own.
const mostNotes = 10

// notes names objects that are kept on purpose, an event each; the last event lists the
// rest.
func (r *Reconciler) notes(s *state, action string, notes []string) {
	for i, note := range notes {
		if more := len(notes) - mostNotes; i == mostNotes-1 && more > 0 {
			r.normal(s, "Kept", action, fmt.Sprintf("%d more objects are kept: %s", more+1, strings.Join(notes[i:], "; ")))
			return
		}
		r.normal(s, "Kept", action, note)
	}
}

func (r *Reconciler) emitReady(before, after *v1alpha1.BundleDeployment) {
	was, is := conditions.Get(before, meta.ReadyCondition), conditions.Get(after, meta.ReadyCondition)
	if is == nil || was != nil && was.Status == is.Status && was.Message == is.Message {
		return
	}
	switch is.Status {
	case metav1.ConditionTrue:
		r.Events.Eventf(after, nil, corev1.EventTypeNormal, "Ready", "Check", "%s", is.Message)
	case metav1.ConditionFalse:
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Reconcile", "%s", is.Message)
	}
}

func (r *Reconciler) normal(s *state, reason, action, note string) {
	r.Events.Eventf(s.Object, nil, corev1.EventTypeNormal, reason, action, "%s", note)
}

func (r *Reconciler) warning(s *state, reason, action, note string) {
	r.Events.Eventf(s.Object, nil, corev1.EventTypeWarning, reason, action, "%s", note)
}

// emitRemoval emits a failed removal, once for each message.
func (r *Reconciler) emitRemoval(s *state) {
	was, is := conditions.Get(s.Before, meta.ReadyCondition), conditions.Get(s.Object, meta.ReadyCondition)
	if is.Status == metav1.ConditionFalse && (was == nil || was.Message != is.Message) {
		r.Events.Eventf(s.Object, nil, corev1.EventTypeWarning, is.Reason, "Remove", "%s", is.Message)
	}
}
