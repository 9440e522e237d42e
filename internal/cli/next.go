// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// nextUp says what happens next without anybody's doing, most important first:
//
//	being deleted        the objects go, then the deployment
//	suspended            nothing, until resumed
//	change not seen yet  the controller sees it
//	rolled back          what is in force is cared for; the rejected revision waits
//	waits for approval   it is carried out when somebody approves
//	stalled              nothing, until somebody changes something
//	failed, retrying     the next attempt, at the latest after retryInterval
//	in progress          the attempt goes on, when what it waits for has come
//	Ready                the next check, after interval
func nextUp(d *v1alpha1.BundleDeployment, source *v1alpha1.BundleSource, s summary) []string {
	var next []string
	if at := requested(d, s); at != "" && !s.suspended {
		next = append(next, fmt.Sprintf("The reconcile requested at %s is not handled yet.", at))
	}
	waits := waitsText(d)
	switch {
	case s.deleting:
		return append(next, "Its objects are removed in order, then it goes itself.")
	case s.suspended:
		return append(next, "Nothing happens until spec.suspend is false; drift is not repaired.")
	case s.unseen || s.ready == "":
		return append(next, "The controller looks at it within seconds; if not, see whether bundle-deployment-controller runs.")
	case s.reason == v1alpha1.ReasonApprovalPending:
		return append(next, waits...)
	case s.stalled && s.reason == v1alpha1.ReasonRevisionRejected:
		next = append(next, fmt.Sprintf("The revision in force is kept from drifting. Revision %s is tried again when a reconcile is asked for, or the spec changes; another one of the source at once.",
			shortRevision(d.Status.RejectedRevision)))
	case s.stalled:
		return append(next, "Nothing is tried again until the deployment, or what it refers to, is changed.")
	case s.work == meta.ProgressingWithRetryReason:
		next = append(next, fmt.Sprintf("It is tried again, at the latest after %s.", short(d.Spec.RetryIntervalOrDefault())))
	case s.inProgress():
		next = append(next, underWay(d, s.reason))
	default:
		next = append(next, fmt.Sprintf("Objects are compared with the bundle at the latest every %s, and drift is repaired.",
			short(d.Spec.IntervalOrDefault())))
	}
	return slices.Concat(next, waits, nextSource(source))
}

// waitsText says what is not done without consent, and what becomes of it; nothing where all is done.
func waitsText(d *v1alpha1.BundleDeployment) []string {
	pending := pendingApproval(d)
	if pending == nil {
		return nil
	}
	plan := fmt.Sprintf("plan %s for revision %s", shortRevision(d.Status.Plan.Digest), shortRevision(d.Status.Plan.Revision))
	switch pending.Reason {
	case v1alpha1.ReasonPruneHeld:
		return []string{"What left the bundle is kept: there is too much of it. It goes when somebody approves the " + plan + ", or raises spec.prune.limit."}
	case v1alpha1.ReasonApprovalDenied:
		return []string{"The " + plan + " is denied; another one is planned when the bundle or the spec changes."}
	}
	return []string{"The " + plan + " is carried out when somebody approves it: see it with approve --dry-run."}
}

// underWay says how what is in progress goes on.
func underWay(d *v1alpha1.BundleDeployment, reason string) string {
	switch reason {
	case v1alpha1.ReasonHealthProgressing:
		return fmt.Sprintf("Health is watched; what is not healthy %s after it was applied counts as failed.", short(d.Spec.TimeoutOrDefault()))
	case v1alpha1.ReasonDependencyNotReady:
		return hints[reason]
	}
	return "The controller is at it."
}

// nextCertificates says when self-signed certificates end.
func nextCertificates(d *v1alpha1.BundleDeployment, s summary, now time.Time) []string {
	end := d.Status.CertificateExpirationTime
	switch {
	case end == nil || s.deleting:
		return nil
	case !now.Before(end.Time):
		return []string{fmt.Sprintf("A certificate of its webhooks ended %s ago; until it is renewed the API server cannot call them.", age(now, *end))}
	}
	renewal := "is renewed before"
	if d.Spec.Suspend {
		renewal = "is not renewed while it is suspended"
	}
	return []string{fmt.Sprintf("The first of its certificates ends in %s, and %s.", duration.HumanDuration(end.Sub(now)), renewal)}
}

// nextSource says when the source is looked at again.
func nextSource(source *v1alpha1.BundleSource) []string {
	switch {
	case source == nil:
		return nil
	case source.Spec.Suspend:
		return []string{"The source is suspended and not looked at."}
	case source.Spec.Immutable && source.Status.Artifact != nil:
		return []string{"The source is immutable and not looked at again."}
	}
	for _, s := range source.Spec.Sources {
		if !isPinned(s) {
			return []string{fmt.Sprintf("The source is looked at again every %s.", short(source.Spec.IntervalOrDefault()))}
		}
	}
	return []string{"The source is pinned and not looked at again."}
}
