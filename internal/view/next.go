// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// nextUp says what happens next without user action, most important first:
//
//	being deleted        the objects go, then the deployment; or what a removal that fails waits for
//	suspended            nothing, until resumed
//	change not seen yet  the controller sees it
//	rolled back          drift from the applied revision is corrected; the rejected revision waits
//	waits for approval   the plan is carried out when it is approved
//	stalled              nothing, until the deployment or what it refers to changes
//	failed, retrying     the next attempt, at the latest after retryInterval
//	in progress          the attempt continues when what it waits for is available
//	Ready                the next check, after interval
func nextUp(d *v1alpha1.BundleDeployment, source *v1alpha1.BundleSource, s Summary) []string {
	var next []string
	if at := Requested(d, s); at != "" && !s.Suspended {
		next = append(next, fmt.Sprintf("The reconcile requested at %s is not handled yet.", at))
	}
	waits := waitsText(d)
	switch {
	case s.Deleting:
		return append(next, nextRemoval(d))
	case s.Suspended:
		return append(next, "Nothing happens until spec.suspend is false; drift is not repaired.")
	case s.Unseen || s.Ready == "":
		return append(next, "The controller reconciles it within seconds; if not, see whether bundle-deployment-controller runs.")
	case s.Reason == v1alpha1.ReasonApprovalPending:
		return append(next, waits...)
	case s.Stalled && s.Reason == v1alpha1.ReasonRevisionRejected:
		next = append(next, fmt.Sprintf("Drift from the applied revision is corrected. Revision %s is tried again when a reconcile is requested, or the spec changes; another revision of the source at once.",
			ShortRevision(d.Status.Rejected.Revision)))
	case s.Stalled:
		return append(next, "Nothing is retried until the deployment, or what it refers to, is changed.")
	case s.work == meta.ProgressingWithRetryReason:
		next = append(next, fmt.Sprintf("It is retried, at the latest after %s.", Short(effective.RetryInterval(&d.Spec))))
	case s.InProgress():
		next = append(next, underWay(d, s.Reason))
	default:
		next = append(next, fmt.Sprintf("Objects are compared with the bundle at the latest every %s, and drift is repaired.",
			Short(effective.Interval(&d.Spec))))
	}
	return slices.Concat(next, waits, nextSource(source))
}

// nextRemoval says how a removal goes on.
func nextRemoval(d *v1alpha1.BundleDeployment) string {
	if RemovalBlocked(d) == "" {
		return "Its objects are removed in order, then the deployment itself."
	}
	return fmt.Sprintf("The removal is retried until the time that the message names, if it names one. To abandon it now, and leave what is left behind: kubectl annotate bundledeployment %s -n %s %s=now",
		d.Name, d.Namespace, v1alpha1.AbandonAnnotation)
}

// RemovalBlocked says what a removal that fails waits for, and until when; empty if it does not fail.
func RemovalBlocked(d *v1alpha1.BundleDeployment) string {
	blocked := apimeta.FindStatusCondition(d.Status.Conditions, v1alpha1.RemovalBlockedCondition)
	if blocked == nil || blocked.Status != metav1.ConditionTrue {
		return ""
	}
	return blocked.Message
}

// waitsText says what waits for approval, and what happens then; nil if nothing waits.
func waitsText(d *v1alpha1.BundleDeployment) []string {
	pending := PendingApproval(d)
	if pending == nil {
		return nil
	}
	plan := fmt.Sprintf("plan %s for revision %s", ShortRevision(d.Status.Plan.Digest), ShortRevision(d.Status.Plan.Revision))
	switch pending.Reason {
	case v1alpha1.ReasonPruneHeld:
		return []string{"Objects that left the bundle are kept, because there are more than spec.prune.limit. They are deleted when the " + plan + " is approved, or the limit is raised."}
	case v1alpha1.ReasonApprovalDenied:
		return []string{"The " + plan + " is denied; another one is planned when the bundle or the spec changes."}
	}
	return []string{"The " + plan + " is carried out when it is approved: see it with approve --dry-run."}
}

// underWay says what happens next while a step is in progress.
func underWay(d *v1alpha1.BundleDeployment, reason string) string {
	switch reason {
	case v1alpha1.ReasonHealthProgressing:
		return fmt.Sprintf("Health is watched; an object that is not healthy %s after it was applied counts as failed.", Short(effective.Timeout(&d.Spec)))
	case v1alpha1.ReasonDependencyNotReady:
		return Hints[reason]
	}
	return "The controller is working on it."
}

// nextCertificates says when self-signed certificates end.
func nextCertificates(d *v1alpha1.BundleDeployment, s Summary, now time.Time) []string {
	end := d.Status.CertificateExpirationTime
	switch {
	case end == nil || s.Deleting:
		return nil
	case !now.Before(end.Time):
		return []string{fmt.Sprintf("A certificate of its webhooks ended %s ago; until it is renewed the API server cannot call them.", Age(now, *end))}
	}
	renewal := "is renewed before"
	if d.Spec.Suspend {
		renewal = "is not renewed while it is suspended"
	}
	return []string{fmt.Sprintf("The first of its certificates ends in %s, and %s.", duration.HumanDuration(end.Sub(now)), renewal)}
}

// nextSource says when the source is checked again.
func nextSource(source *v1alpha1.BundleSource) []string {
	switch {
	case source == nil:
		return nil
	case source.Spec.Suspend:
		return []string{"The source is suspended and not checked."}
	case source.Spec.Immutable && source.Status.Artifact != nil:
		return []string{"The source is immutable and not checked again."}
	}
	for _, s := range source.Spec.Sources {
		if !IsPinned(s) {
			return []string{fmt.Sprintf("The source is checked again every %s.", Short(effective.SourceInterval(&source.Spec)))}
		}
	}
	return []string{"The source is pinned and not checked again."}
}
