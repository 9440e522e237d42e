// SPDX-License-Identifier: Apache-2.0

package abandon

import (
	"cmp"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Default is how long a removal may fail without its ServiceAccount.
const Default = 10 * time.Minute

// terminatingLimit is the limit where what is missing cannot be created again, because the
// namespace is being deleted.
const terminatingLimit = time.Minute

// now is the value of the annotation.
const now = "now"

// Facts are what is known about a removal that failed.
type Facts struct {
	// Object is the deployment with the status before this attempt.
	Object *v1alpha1.BundleDeployment
	// Reason of the failure: one of the reasons of the API.
	Reason string
	// AccountGone: the ServiceAccount does not exist any more. The removal was tried with the
	// permissions that bindings still give it.
	AccountGone bool
	// Transient: the API server did not answer, or answered with an error of its own. That
	// says nothing about what is missing.
	Transient bool
	// Failures is how often the removal failed in a row before.
	Failures int
	// Terminating is when the deletion of the deployment's namespace began; zero if it is not deleted.
	Terminating time.Time
	// Limit is how long a removal may fail before it is abandoned; Default if 0, negative for ever.
	Limit time.Duration
	Now   time.Time
}

// Wait is a removal that cannot go on.
type Wait struct {
	// Reason and Message are those of the condition RemovalBlocked.
	Reason, Message string
	// Since is when the removal was first seen to fail for this reason.
	Since time.Time
	// Until is when it is abandoned; zero for never.
	Until time.Time
}

// Decide returns the wait of a removal that failed, and why it is abandoned now; "" when it is not. The wait is nil for a
// passing failure.
//
//	asked for by the annotation, and reported before   abandoned
//	the limit is over                                  abandoned
//	a passing failure                                  the wait that was reported, if any, stays as it is
//	else                                               waits, with a limit or without: see causeOf
func Decide(f Facts) (wait *Wait, why string) {
	f.Limit = cmp.Or(f.Limit, Default)
	reported := apimeta.FindStatusCondition(f.Object.Status.Conditions, v1alpha1.RemovalBlockedCondition)
	wait = f.wait(reported)
	switch {
	case reported != nil && f.Object.Annotations[v1alpha1.AbandonAnnotation] == now:
		return wait, fmt.Sprintf("as the annotation %s demands", v1alpha1.AbandonAnnotation)
	case wait != nil && !wait.Until.IsZero() && !f.Now.Before(wait.Until):
		return wait, fmt.Sprintf("after it had failed for %s", f.Now.Sub(wait.Since).Truncate(time.Second))
	}
	return wait, ""
}

// passing is how many failures that say nothing about what is missing are not reported as a wait.
const passing = 2

func (f Facts) wait(reported *metav1.Condition) *Wait {
	if f.Transient && reported != nil {
		return &Wait{Reason: reported.Reason, Message: reported.Message, Since: reported.LastTransitionTime.Time}
	}
	if f.Transient && f.Failures < passing {
		return nil
	}
	c := f.causeOf()
	wait := &Wait{Reason: c.reason, Since: f.Now.Truncate(time.Second)}
	if reported != nil && reported.Reason == c.reason {
		wait.Since = reported.LastTransitionTime.Time
	}
	if c.limit >= 0 {
		wait.Until = latest(wait.Since, c.from).Add(c.limit)
	}
	wait.Message = f.message(c, wait)
	return wait
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// never is a limit that does not end.
const never time.Duration = -1

// cause is what a removal lacks.
type cause struct {
	reason string
	// missing says it in words, and remedy what ends it; "" where nothing can.
	missing, remedy string
	// limit counts from the time from, or from the first such failure if that is later; negative for none.
	limit time.Duration
	from  time.Time
}

// causeOf: the first line that holds decides.
//
//	the other cluster does not answer      limited while the namespace is being deleted
//	the ServiceAccount is gone             limited; in a namespace that is being deleted nothing can bring it back: one minute
//	the kubeconfig is gone                 limited while the namespace is being deleted, in the same way
//	the other cluster cannot be used       limited while the namespace is being deleted
//	else                                   waits until it is corrected: permissions of a ServiceAccount that exists, webhooks, policies
func (f Facts) causeOf() cause {
	remote := effective.IsRemote(f.Object.Spec.Target.ClusterReference)
	switch f.Reason {
	case v1alpha1.ReasonClusterUnreachable, v1alpha1.ReasonClusterTooSlow:
		return f.whileTerminating(cause{
			reason: v1alpha1.ReasonClusterUnreachable, missing: fmt.Sprintf("the cluster of %s does not answer", f.holder()),
			remedy: "see that its API server can be reached", limit: f.Limit,
		})
	case v1alpha1.ReasonKubeConfigRefused, v1alpha1.ReasonClusterDenied, v1alpha1.ReasonTargetChanged:
		return f.whileTerminating(cause{reason: f.Reason, missing: "the cluster of the objects cannot be used", remedy: "correct what the condition Ready names", limit: f.Limit})
	case v1alpha1.ReasonAccountNotFound:
		return f.accountGone("")
	case v1alpha1.ReasonKubeConfigNotFound:
		if f.AccountGone {
			return f.accountGone(", and bindings that are left do not let it read the kubeconfig")
		}
		return f.whileTerminating(cause{
			reason: f.Reason, missing: fmt.Sprintf("the kubeconfig of %s cannot be read", f.holder()),
			limit: f.irretrievable(),
		})
	}
	if f.AccountGone && !remote && !f.Transient {
		return f.accountGone(", and bindings that are left do not suffice")
	}
	return cause{reason: f.Reason, missing: "the objects cannot be removed", remedy: "correct what the condition Ready names", limit: never}
}

// holder names what leads to the other cluster.
func (f Facts) holder() string {
	ref := effective.RemoteCluster(f.Object.Spec.Target.ClusterReference)
	if ref.ClusterProfileRef != nil {
		return fmt.Sprintf("clusterprofile %s/%s", f.Object.Namespace, ref.ClusterProfileRef.Name)
	}
	return fmt.Sprintf("secret %s/%s", f.Object.Namespace, ref.KubeConfig.SecretRef.Name)
}

func (f Facts) accountGone(more string) cause {
	missing := fmt.Sprintf("serviceaccount %s/%s does not exist%s", f.Object.Namespace, f.Object.Spec.ServiceAccountName, more)
	if !f.Terminating.IsZero() {
		return cause{reason: v1alpha1.ReasonAccountNotFound, missing: missing, limit: f.irretrievable()}
	}
	return cause{reason: v1alpha1.ReasonAccountNotFound, missing: missing, remedy: "create it again, with its permissions", limit: f.Limit}
}

// whileTerminating limits a cause that has a limit only while the namespace is being deleted.
func (f Facts) whileTerminating(c cause) cause {
	if f.Terminating.IsZero() {
		c.limit = never
		return c
	}
	c.from = f.Terminating
	return c
}

// irretrievable is the limit of what cannot be created again.
func (f Facts) irretrievable() time.Duration {
	if f.Limit < 0 {
		return terminatingLimit
	}
	return min(f.Limit, terminatingLimit)
}

// message says what is missing, since when, what happens when, and what the user can do.
func (f Facts) message(c cause, w *Wait) string {
	const left = "what is left is then annotated " + v1alpha1.OrphanedAnnotation + " where that is possible, listed in the event LeftBehind, and stays"
	const demand = "the annotation " + v1alpha1.AbandonAnnotation + "=now"
	text := fmt.Sprintf("%s; the removal has failed since %s", c.missing, stamp(w.Since))
	switch {
	case !w.Until.IsZero() && c.remedy == "":
		return fmt.Sprintf("%s. Nothing can be created in namespace %s while that is deleted, so the removal is abandoned at %s, or at once with %s: %s",
			text, f.Object.Namespace, stamp(w.Until), demand, left)
	case !w.Until.IsZero():
		return fmt.Sprintf("%s. It is abandoned at %s: %s. Before that, %s; or abandon it at once with %s", text, stamp(w.Until), left, c.remedy, demand)
	}
	remedy := c.remedy
	if remedy == "" {
		remedy = "correct what the condition Ready names"
	}
	return fmt.Sprintf("%s. It is retried without a time limit: %s; or abandon it with %s: %s", text, remedy, demand, left)
}

// stamp is a time for people; it does not change between attempts.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
