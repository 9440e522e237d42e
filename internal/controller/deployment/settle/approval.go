// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/plural"
)

// setApproval sets the ApprovalPending condition. The first line that holds decides.
//
//	nothing was planned                      unchanged
//	the plan waits, or is denied             ApprovalRequired, ApprovalDenied
//	a prune is held, and is denied           ApprovalDenied
//	a prune is held                          PruneHeld
//	else                                     nothing
func setApproval(in *Input, err error) {
	if !in.Decided.Accepted && !approval.AwaitsApproval(err) {
		return
	}
	pending := func(reason, message string) {
		pipeline.SetCondition(in.Object, v1alpha1.ApprovalPendingCondition, metav1.ConditionTrue, reason, message)
	}
	switch {
	case approval.AwaitsApproval(err):
		pending(failure.Of(err).Reason, failure.Of(err).Error())
	case in.Decided.Plan.Held != nil && in.Decided.ApprovalState != nil && in.Decided.ApprovalState.Denied != nil:
		pending(v1alpha1.ReasonApprovalDenied, in.Decided.ApprovalState.DeniedText(in.Resolved.Revision())+"\n"+in.Decided.Plan.Held.String())
	case in.Decided.Plan.Held != nil && in.Decided.ApprovalState != nil:
		pending(v1alpha1.ReasonPruneHeld, in.Decided.Plan.Held.String()+fmt.Sprintf(", or approve it with satchel approve %s -n %s --plan %s",
			in.Object.Name, in.Object.Namespace, in.Decided.ApprovalState.Digest))
	default:
		conditions.Delete(in.Object, v1alpha1.ApprovalPendingCondition)
	}
}

// setAwaiting sets Ready while a plan waits for an approval; the first line that holds
// decides.
//
//	nothing is applied                       not Ready: ApprovalPending
//	its drift cannot be corrected            Retrying
//	it is healthy                            Ready
//	else                                     Progressing, Retrying when overdue or failed
func setAwaiting(in *Input, err error) {
	d, last := in.Object, in.Object.Status.Applied.Revision
	waits := "; another plan waits for an approval: see " + v1alpha1.ApprovalPendingCondition
	healthy := conditions.Get(d, v1alpha1.HealthyCondition)
	switch {
	case last == "":
		pipeline.SetRetrying(d, v1alpha1.ReasonApprovalPending, failure.Of(err).Error())
	case in.KeepErr != nil:
		pipeline.SetRetrying(d, failure.Of(in.KeepErr).Reason, "revision "+last+" stays applied, but could not be compared with the cluster: "+failure.Of(in.KeepErr).Error()+waits)
	case in.Kept == nil || in.Kept.Settled.Health == nil || healthy == nil:
		pipeline.SetProgressing(d, v1alpha1.ReasonProgressing, "revision "+last+" stays applied"+waits)
	case healthy.Status == metav1.ConditionTrue:
		pipeline.SetReady(d, v1alpha1.ReasonSucceeded, fmt.Sprintf("revision %s stays applied: %s, %s%s", last, plural.Of(in.Kept.Note.Health.Total, "object"), in.Kept.healthyWords(), waits))
	case healthy.Status == metav1.ConditionUnknown:
		pipeline.SetProgressing(d, healthy.Reason, healthy.Message+waits)
	default:
		pipeline.SetRetrying(d, healthy.Reason, healthy.Message+waits)
	}
}
