// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/fetch/links"
	"github.com/satchel-dev/satchel/internal/plural"
	"github.com/satchel-dev/satchel/internal/spec/revision"
)

// Emit emits events for what this reconcile changed; none if nothing changed.
func (st *Stage) Emit(in *Input) {
	st.EmitRecovered(in)
	st.emitPlanWarnings(in)
	st.emitObjectWarnings(in)
	st.emitApplied(in)
	st.emitDriftCorrected(in)
	st.emitGaveWay(in)
	st.emitHandedOver(in)
	st.emitDriftFound(in)
	st.emitPruned(in)
	st.emitRejected(in)
	st.emitApproval(in)
	st.EmitCertificates(in)
	st.emitReady(in)
}

// emitPlanWarnings emits the warnings of the plan, such as an unsafe upgrade of CRDs
// that is allowed: once, while the status holds the warning.
func (st *Stage) emitPlanWarnings(in *Input) {
	if fresh := in.fresh(in.planWarnings(), nil); fresh != "" {
		st.Events.Warning(in.Subject, "PlanWarning", "Plan", fresh)
	}
}

// emitObjectWarnings emits the warnings of the API server and of the conversion, and those about files that are left out of the artifact:
// once, while the status holds the warning.
func (st *Stage) emitObjectWarnings(in *Input) {
	var leftOut []string
	for _, warning := range in.Object.Status.Warnings {
		if links.IsWarning(warning) {
			leftOut = append(leftOut, warning)
		}
	}
	if fresh := in.fresh(leftOut, nil); fresh != "" {
		st.Events.Warning(in.Subject, "FilesLeftOut", "Convert", fresh)
	}
	if fresh := in.fresh(in.Object.Status.Warnings, append(in.planWarnings(), leftOut...)); fresh != "" {
		st.Events.Warning(in.Subject, "ObjectWarning", "Apply", fresh)
	}
}

// fresh joins the warnings that the status did not hold before, without those of the
// second list, to the message of an event; "" for none.
func (in *Input) fresh(warnings, without []string) string {
	left := slices.DeleteFunc(slices.Clone(warnings), func(warning string) bool {
		return slices.Contains(in.Before.Status.Warnings, warning) || slices.Contains(without, warning)
	})
	return strings.Join(left, "\n")
}

func (st *Stage) emitApplied(in *Input) {
	if in.Delivered.Applied != nil {
		st.emitAdopted(in)
		st.emitRecreated(in)
	}
	if in.Settled.Announced != nil && !in.Settled.Held {
		st.Events.Normal(in.Subject, in.Settled.Announced.Reason, "Apply", in.Settled.Announced.Note+in.readyAtOnce())
	}
}

// readyAtOnce is the end of the event about an apply if the revision is Ready with it.
func (in *Input) readyAtOnce() string {
	is := conditions.Get(in.Object, meta.ReadyCondition)
	if !in.readyChanged() || is.Status != metav1.ConditionTrue {
		return ""
	}
	return "; Ready: " + strings.TrimPrefix(is.Message, "applied revision "+in.Resolved.Revision()+": ")
}

// emitAdopted names the adopted objects.
func (st *Stage) emitAdopted(in *Input) {
	var adopted []string
	for _, outcome := range in.Delivered.Applied.Outcomes {
		if outcome.Kind == apply.Adopted {
			adopted = append(adopted, fmt.Sprintf("%s, which %s", outcome.ID, outcome.Reason))
		}
	}
	if len(adopted) > 0 {
		st.Events.Normal(in.Subject, "Adopted", "Apply", fmt.Sprintf("adopted %s: %s", plural.Of(len(adopted), "object"), strings.Join(adopted, "; ")))
	}
}

// emitRecreated names objects that were deleted because of changes to immutable fields.
func (st *Stage) emitRecreated(in *Input) {
	var recreated []inventory.ID
	for _, outcome := range in.Delivered.Applied.Outcomes {
		if outcome.Recreates() {
			recreated = append(recreated, outcome.ID)
		}
	}
	if len(recreated) > 0 {
		st.Events.Normal(in.Subject, "Recreated", "Apply", fmt.Sprintf("deleted %s to recreate %s, since immutable fields change: %s", plural.Of(len(recreated), "object"), plural.Choose(len(recreated), "it", "them"), pipeline.JoinNames(recreated)))
	}
}

// emitDriftCorrected names the objects with corrected drift: those changed or deleted by
// another client, of this revision and of the applied one.
func (st *Stage) emitDriftCorrected(in *Input) {
	var repaired []string
	for outcome := range in.outcomes() {
		if outcome.Kind == apply.Repaired {
			repaired = append(repaired, outcome.ID.String())
		}
	}
	if len(repaired) > 0 {
		st.Events.Normal(in.Subject, "DriftCorrected", "Apply", "restored objects that another client had changed: "+strings.Join(repaired, ", "))
	}
}

// emitGaveWay names the fields that were removed because they exclude what the bundle sets, and their managers.
func (st *Stage) emitGaveWay(in *Input) {
	var notes []string
	for outcome := range in.outcomes() {
		for _, field := range outcome.GaveWay {
			notes = append(notes, fmt.Sprintf("%s: %s", outcome.ID, field))
		}
	}
	if len(notes) > 0 {
		st.Events.Warning(in.Subject, "FieldsRemoved", "Apply", "removed fields that exclude what the bundle sets: "+strings.Join(notes, "; "))
	}
}

// emitHandedOver names the fields that left the bundle and keep their values, and why.
func (st *Stage) emitHandedOver(in *Input) {
	var notes []string
	for outcome := range in.outcomes() {
		for _, field := range outcome.Kept {
			notes = append(notes, fmt.Sprintf("%s: %s", outcome.ID, field))
		}
	}
	if len(notes) > 0 {
		st.Events.Normal(in.Subject, "FieldsHandedOver", "Apply", "kept fields that left the bundle: "+strings.Join(notes, "; "))
	}
}

// outcomes are those of all objects that were written in this reconcile, of this revision and of the applied one.
func (in *Input) outcomes() iter.Seq[apply.Outcome] {
	return func(yield func(apply.Outcome) bool) {
		results := []*apply.Result{in.Delivered.Repaired.Result(), in.Delivered.Applied}
		if in.Kept != nil {
			results = append(results, in.Kept.Delivered.Applied)
		}
		for _, result := range results {
			if result == nil {
				continue
			}
			for _, outcome := range result.Outcomes {
				if !yield(outcome) {
					return
				}
			}
		}
	}
}

// emitRejected emits that a revision was rejected and the last healthy one is rolled
// back to. Ready tells when that is applied.
func (st *Stage) emitRejected(in *Input) {
	if in.Settled.RejectedNow {
		st.Events.Warning(in.Subject, "RollingBack", "Remediate", "rolling back to "+in.lastHealthy()+": "+in.rejection())
	}
}

// lastHealthy names the revision that is rolled back to.
func (in *Input) lastHealthy() string {
	return revision.Recorded(in.Object.Status.History, in.Object.Status.Internal.Artifact.Revision)
}

func (st *Stage) emitPruned(in *Input) {
	if in.Delivered.Pruned == nil {
		return
	}
	if deleted := in.Delivered.Pruned.DeletedIDs; len(deleted) > 0 {
		st.Events.Normal(in.Subject, "Pruned", "Prune", fmt.Sprintf("deleted %s that left the bundle: %s", plural.Of(len(deleted), "object"), pipeline.JoinNames(deleted)))
	}
	st.emitKept(in, "Prune", in.Delivered.Pruned.Notes)
}

// EmitKept names the objects that a removal keeps on purpose.
func (st *Stage) EmitKept(in *Input) {
	if in.Delivered.Removed == nil {
		return
	}
	st.emitKept(in, "Remove", in.Delivered.Removed.Notes)
	if cleared := in.Delivered.Removed.Cleared; len(cleared) > 0 {
		st.Events.Normal(in.Subject, "WebhookDeleted", "Remove", strings.Join(cleared, "; "))
	}
}

// emitKept names the objects that are kept on purpose, all in one event: events about
// one state of an object with the same reason and action are a series for the API
// server, which shows the first note only.
func (st *Stage) emitKept(in *Input, action string, notes []string) {
	switch len(notes) {
	case 0:
	case 1:
		st.Events.Normal(in.Subject, "Kept", action, notes[0])
	default:
		st.Events.Normal(in.Subject, "Kept", action, fmt.Sprintf("%d objects are kept: %s", len(notes), strings.Join(notes, "; ")))
	}
}

// emitReady emits a change of Ready, unless the event about the apply has said that the revision is Ready.
func (st *Stage) emitReady(in *Input) {
	is := conditions.Get(in.Object, meta.ReadyCondition)
	switch {
	case !in.readyChanged():
	case is.Status == metav1.ConditionTrue && in.Settled.Announced == nil:
		st.Events.Normal(in.Subject, "Ready", "Check", is.Message)
	case is.Status == metav1.ConditionFalse:
		st.Events.Warning(in.Subject, is.Reason, "Reconcile", is.Message)
	}
}

// readyChanged tells whether the condition Ready has another status or message than when the reconcile began.
func (in *Input) readyChanged() bool {
	was, is := conditions.Get(in.Before, meta.ReadyCondition), conditions.Get(in.Object, meta.ReadyCondition)
	return is != nil && (was == nil || was.Status != is.Status || was.Message != is.Message)
}

// EmitRemoval emits a failed removal, once for each message.
func (st *Stage) EmitRemoval(in *Input) {
	was, is := conditions.Get(in.Before, meta.ReadyCondition), conditions.Get(in.Object, meta.ReadyCondition)
	if is.Status == metav1.ConditionFalse && (was == nil || was.Message != is.Message) {
		st.Events.Warning(in.Subject, is.Reason, "Remove", is.Message)
	}
}

// emitApproval emits an event when a plan or prune waits for an approval, once for each
// message, and when an approved plan is executed.
func (st *Stage) emitApproval(in *Input) {
	was, is := conditions.Get(in.Before, v1alpha1.ApprovalPendingCondition), conditions.Get(in.Object, v1alpha1.ApprovalPendingCondition)
	if is != nil && (was == nil || was.Message != is.Message) {
		switch is.Reason {
		case v1alpha1.ReasonPruneHeld:
			st.Events.Warning(in.Subject, "PruneHeld", "Prune", is.Message)
		case v1alpha1.ReasonApprovalDenied:
			st.Events.Warning(in.Subject, "ApprovalDenied", "Approve", is.Message)
		default:
			st.Events.Normal(in.Subject, "ApprovalRequired", "Approve", is.Message)
		}
	}
	if c := in.Decided.ApprovalState; c != nil && c.Begun && in.Object.Status.Internal.Executed.Approval != "" {
		st.Events.Normal(in.Subject, "Approved", "Approve", fmt.Sprintf("the plan %s for revision %s is executed, as bundleapproval %s allows", c.Digest, in.Resolved.Revision(), in.Object.Status.Internal.Executed.Approval))
	}
}

// EmitRecovered emits that an inventory was rebuilt, and which kinds could not be
// searched everywhere.
func (st *Stage) EmitRecovered(in *Input) {
	if in.Listed.Recovered == nil {
		return
	}
	why := "was lost"
	if in.Listed.Unreadable {
		why = "could not be read"
	}
	found := len(in.Listed.Recovered.Entries)
	note := fmt.Sprintf("the inventory %s; %s found by %s labels", why,
		plural.Of(found, "object")+plural.Choose(found, " was", " were"), plural.Choose(found, "its", "their"))
	if unseen := in.Listed.Recovered.Unseen; len(unseen) > 0 {
		note += "; the ServiceAccount may not list these kinds in all namespaces, so they were looked for in known namespaces only, or not at all: " + strings.Join(unseen, ", ")
	}
	st.Events.Normal(in.Subject, "InventoryRebuilt", "Recover", note)
}
