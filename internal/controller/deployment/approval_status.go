// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// setApproval sets the ApprovalPending condition. The first line that holds decides.
//
//	nothing was planned                      unchanged
//	the plan waits, or is denied             ApprovalRequired, ApprovalDenied
//	a prune is held, and is denied           ApprovalDenied
//	a prune is held                          PruneHeld
//	else                                     nothing
func setApproval(s *state, err error) {
	if !s.decided.Accepted {
		return
	}
	pending := func(reason, message string) {
		pipeline.SetCondition(s.Object, v1alpha1.ApprovalPendingCondition, metav1.ConditionTrue, reason, message)
	}
	switch {
	case approval.AwaitsApproval(err):
		pending(failure.Of(err).Reason, failure.Of(err).Error())
	case s.decided.Plan.Held != nil && s.decided.Consent != nil && s.decided.Consent.Denied != nil:
		pending(v1alpha1.ReasonApprovalDenied, s.decided.Consent.DeniedText(s.resolved.Revision())+"\n"+s.decided.Plan.Held.String())
	case s.decided.Plan.Held != nil && s.decided.Consent != nil:
		pending(v1alpha1.ReasonPruneHeld, s.decided.Plan.Held.String()+fmt.Sprintf(", or approve it with satchel approve %s -n %s --plan %s",
			s.Object.Name, s.Object.Namespace, s.decided.Consent.Digest))
	default:
		conditions.Delete(s.Object, v1alpha1.ApprovalPendingCondition)
	}
}

// setAwaiting sets Ready while a plan waits for an approval; the first line that holds
// decides.
//
//	nothing is applied                       not Ready: ApprovalPending
//	its drift cannot be corrected            Retrying
//	it is healthy                            Ready
//	else                                     Progressing, Retrying when overdue or failed
func setAwaiting(s *state, err error) {
	d, last := s.Object, s.Object.Status.LastAppliedRevision
	waits := "; another plan waits for an approval: see " + v1alpha1.ApprovalPendingCondition
	healthy := conditions.Get(d, v1alpha1.HealthyCondition)
	switch {
	case last == "":
		pipeline.SetRetrying(d, v1alpha1.ReasonApprovalPending, failure.Of(err).Error())
	case s.keepErr != nil:
		pipeline.SetRetrying(d, failure.Of(s.keepErr).Reason, "revision "+last+" stays applied, but could not be compared with the cluster: "+failure.Of(s.keepErr).Error()+waits)
	case s.kept == nil || s.kept.settled.Health == nil || healthy == nil:
		pipeline.SetProgressing(d, v1alpha1.ReasonProgressing, "revision "+last+" stays applied"+waits)
	case healthy.Status == metav1.ConditionTrue:
		pipeline.SetReady(d, v1alpha1.ReasonSucceeded, fmt.Sprintf("revision %s stays applied: %d objects, %s%s", last, s.kept.note.Health.Total, s.kept.healthyWords(), waits))
	case healthy.Status == metav1.ConditionUnknown:
		pipeline.SetProgressing(d, healthy.Reason, healthy.Message+waits)
	default:
		pipeline.SetRetrying(d, healthy.Reason, healthy.Message+waits)
	}
}

// emitApproval emits an event when a plan or prune waits for an approval, once for each
// message, and when an approved plan is executed.
func (r *Reconciler) emitApproval(s *state) {
	was, is := conditions.Get(s.Before, v1alpha1.ApprovalPendingCondition), conditions.Get(s.Object, v1alpha1.ApprovalPendingCondition)
	if is != nil && (was == nil || was.Message != is.Message) {
		switch is.Reason {
		case v1alpha1.ReasonPruneHeld:
			r.warning(s, "PruneHeld", "Prune", is.Message)
		case v1alpha1.ReasonApprovalDenied:
			r.warning(s, "ApprovalDenied", "Approve", is.Message)
		default:
			r.normal(s, "ApprovalRequired", "Approve", is.Message)
		}
	}
	if c := s.decided.Consent; c != nil && c.Begun && s.Object.Status.Executed.Approval != "" {
		r.normal(s, "Approved", "Approve", fmt.Sprintf("the plan %s for revision %s is executed, as bundleapproval %s allows", c.Digest, s.resolved.Revision(), s.Object.Status.Executed.Approval))
	}
}
