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
)

// emit records what this reconcile changed; nothing where nothing happened.
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
	r.emitReady(s.before, s.object)
}

// emitPlanWarnings tells what the plan may cost, such as an upgrade of CRDs that is
// allowed nevertheless: once, for as long as the status holds the warning.
func (r *Reconciler) emitPlanWarnings(s *state) {
	if fresh := s.fresh(s.planWarnings(), nil); fresh != "" {
		r.Events.Eventf(s.object, nil, corev1.EventTypeWarning, "PlanWarning", "Plan", "%s", fresh)
	}
}

// emitObjectWarnings tells what the API server, or the conversion, warned of: once, for as
// long as the status holds the warning.
func (r *Reconciler) emitObjectWarnings(s *state) {
	if fresh := s.fresh(s.object.Status.Warnings, s.planWarnings()); fresh != "" {
		r.Events.Eventf(s.object, nil, corev1.EventTypeWarning, "ObjectWarning", "Apply", "%s", fresh)
	}
}

// fresh are the warnings that the status did not hold before, without others, as the
// text of an event; "" for none.
func (s *state) fresh(warnings, without []string) string {
	left := slices.DeleteFunc(slices.Clone(warnings), func(warning string) bool {
		return slices.Contains(s.before.Status.Warnings, warning) || slices.Contains(without, warning)
	})
	return strings.Join(left, "\n")
}

func (r *Reconciler) emitApplied(s *state) {
	r.emitRepaired(s, s.mended.result())
	if s.applied == nil {
		return
	}
	created, updated := s.applied.Count(apply.Created), s.applied.Count(apply.Updated)
	r.emitAdopted(s)
	r.emitRecreated(s)
	switch was, is := s.before.Status.LastAppliedRevision, s.object.Status.LastAppliedRevision; {
	case was == is:
	case was == "":
		r.normal(s, "Installed", "Apply", fmt.Sprintf("applied revision %s: %d objects created, %d updated", s.revision(), created, updated))
	default:
		r.normal(s, "Upgraded", "Apply", fmt.Sprintf("went from revision %s to %s: %d objects created, %d updated", was, is, created, updated))
	}
	r.emitDrift(s)
}

// emitAdopted names what was taken over from others.
func (r *Reconciler) emitAdopted(s *state) {
	var adopted []string
	for _, outcome := range s.applied.Outcomes {
		if outcome.Kind == apply.Adopted {
			adopted = append(adopted, fmt.Sprintf("%s, which %s", outcome.ID, outcome.Reason))
		}
	}
	if len(adopted) > 0 {
		r.normal(s, "Adopted", "Apply", fmt.Sprintf("took over %d objects: %s", len(adopted), strings.Join(adopted, "; ")))
	}
}

// emitRecreated names what was deleted because fields of it cannot change.
func (r *Reconciler) emitRecreated(s *state) {
	var anew []inventory.ID
	for _, outcome := range s.applied.Outcomes {
		if outcome.Recreates() {
			anew = append(anew, outcome.ID)
		}
	}
	if len(anew) > 0 {
		r.normal(s, "Recreated", "Apply", fmt.Sprintf("deleted %d objects to create them anew, for fields of them cannot change: %s", len(anew), names(anew)))
	}
}

// emitDrift names what was put right: objects that somebody changed, and those
// that were deleted although they had been applied.
func (r *Reconciler) emitDrift(s *state) {
	r.emitRepaired(s, s.applied)
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
		r.normal(s, "DriftCorrected", "Apply", "restored what somebody had changed: "+strings.Join(repaired, ", "))
	}
}

// emitRejected tells that a revision was given up for the last healthy one. That it is
// in force again, Ready tells.
func (r *Reconciler) emitRejected(s *state) {
	if s.givenUp {
		r.Events.Eventf(s.object, nil, corev1.EventTypeWarning, "RollingBack", "Remediate", "%s",
			"going back to revision "+s.object.Status.LastHealthyArtifact.Revision+": "+s.rejection())
	}
}

func (r *Reconciler) emitPruned(s *state) {
	if s.pruned == nil {
		return
	}
	if deleted := s.pruned.DeletedIDs; len(deleted) > 0 {
		r.normal(s, "Pruned", "Prune", fmt.Sprintf("deleted %d objects that left the bundle: %s", len(deleted), names(deleted)))
	}
	r.notes(s, "Prune", s.pruned.Notes)
}

// emitKept names what a removal leaves on purpose.
func (r *Reconciler) emitKept(s *state) {
	if s.removed == nil {
		return
	}
	r.notes(s, "Remove", s.removed.Notes)
	for _, note := range s.removed.Cleared {
		r.normal(s, "WebhookDeleted", "Remove", note)
	}
}

// mostNotes is how many objects have an event each.
const mostNotes = 10

// notes names what is kept on purpose, an event each; many share the last one.
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
	r.Events.Eventf(s.object, nil, corev1.EventTypeNormal, reason, action, "%s", note)
}

func (r *Reconciler) warning(s *state, reason, action, note string) {
	r.Events.Eventf(s.object, nil, corev1.EventTypeWarning, reason, action, "%s", note)
}

// emitRemoval records a removal that fails, once a message.
func (r *Reconciler) emitRemoval(s *state) {
	was, is := conditions.Get(s.before, meta.ReadyCondition), conditions.Get(s.object, meta.ReadyCondition)
	if is.Status == metav1.ConditionFalse && (was == nil || was.Message != is.Message) {
		r.Events.Eventf(s.object, nil, corev1.EventTypeWarning, is.Reason, "Remove", "%s", is.Message)
	}
}

func names[T fmt.Stringer](ids []T) string {
	words := make([]string, 0, len(ids))
	for _, id := range ids {
		words = append(words, id.String())
	}
	return strings.Join(words, ", ")
}
