// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// stateOf maps the states of kstatus; Current means healthy and is not in it.
var stateOf = map[status.Status]State{
	status.InProgressStatus:  InProgress,
	status.FailedStatus:      Failed,
	status.TerminatingStatus: Terminating,
	status.NotFoundStatus:    Missing,
	status.UnknownStatus:     Unknown,
}

// assess returns the state of an object by its own status; ok when healthy.
func assess(object *unstructured.Unstructured) (state State, message string, ok bool) {
	kind := inventory.IDOf(object).GroupKind().String()
	if unseen(object) {
		return InProgress, "its controller has not seen it yet", false
	}
	if kind == "Job.batch" && object.GetDeletionTimestamp() == nil {
		return assessJob(object)
	}
	result, err := status.Compute(object)
	if err != nil {
		return Unknown, fmt.Sprintf("its status cannot be read: %v", err), false
	}
	if result.Status == status.CurrentStatus {
		return "", "", true
	}
	return stateOf[result.Status], inWords(object, result.Message), false
}

// unseen tells that the controller of a workload has not observed it yet, so that
// it has no Pods either.
func unseen(object *unstructured.Unstructured) bool {
	if !controlled[inventory.IDOf(object).GroupKind().String()] || object.GetDeletionTimestamp() != nil {
		return false
	}
	_, seen, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	return !seen
}

// inWords prefers the object's own message: a Deployment that may not create Pods
// says why in a condition that kstatus does not read.
func inWords(object *unstructured.Unstructured, message string) string {
	if text := conditionMessage(object, "ReplicaFailure", "True"); text != "" {
		message = text
	}
	return strings.TrimSuffix(strings.Join(strings.Fields(message), " "), ".")
}

// assessJob expects a Job to be completed, or suspended on purpose.
func assessJob(job *unstructured.Unstructured) (State, string, bool) {
	if suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend"); suspended {
		return "", "", true
	}
	if hasCondition(job, "Complete", "True") {
		return "", "", true
	}
	if hasCondition(job, "Failed", "True") {
		return Failed, "the Job failed: " + conditionMessage(job, "Failed", "True"), false
	}
	return InProgress, "the Job has not completed yet", false
}

// completed tells whether a Job ran to its end, also when it is being deleted because of that.
func completed(object *unstructured.Unstructured) bool {
	return inventory.IDOf(object).GroupKind().String() == "Job.batch" && hasCondition(object, "Complete", "True")
}

func hasCondition(object *unstructured.Unstructured, kind, value string) bool {
	_, found := condition(object, kind, value)
	return found
}

func conditionMessage(object *unstructured.Unstructured, kind, value string) string {
	fields, _ := condition(object, kind, value)
	message, _ := fields["message"].(string)
	return message
}

func condition(object *unstructured.Unstructured, kind, value string) (map[string]any, bool) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		fields, _ := item.(map[string]any)
		if fields["type"] == kind && fields["status"] == value {
			return fields, true
		}
	}
	return nil, false
}
