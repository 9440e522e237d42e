// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Completion is the progress of an object that runs once.
type Completion struct {
	// Done: a Job or Pod has succeeded; anything else exists.
	Done bool
	// State and Message say why it is not done; Failed and Missing end it.
	State   State
	Message string
}

// Ended tells that waiting does not help.
func (c Completion) Ended() bool { return c.State == Failed || c.State == Missing }

// Complete reads an object that runs once; an object with another UID counts as missing.
// An error means that a request failed.
func (r Rules) Complete(ctx context.Context, client reader, object plan.Object, uid string) (Completion, error) {
	live, err := client.Get(ctx, tenant.Ref{Resource: object.Resource, Namespace: object.Namespace, Name: object.Name})
	switch {
	case apierrors.IsNotFound(err), err == nil && uid != "" && string(live.GetUID()) != uid:
		return Completion{State: Missing, Message: "it was deleted before it was seen to end; if it deletes itself, give it a longer ttlSecondsAfterFinished"}, nil
	case apierrors.IsForbidden(err):
		return Completion{State: Unknown, Message: "the ServiceAccount may not get it"}, nil
	case err != nil:
		return Completion{}, fmt.Errorf("looking at %s: %w", object.ID, err)
	}
	state, message, done, err := r.ends(ctx, live)
	if err != nil || done {
		return Completion{Done: done}, err
	}
	if traceable(live) {
		if cause := (checking{client: client}).whatKeeps(ctx, live); cause != "" {
			message += ": " + cause
		}
	}
	return Completion{State: state, Message: message}, nil
}

// ends is assess for an object that runs to an end. As Helm does, it waits for Jobs and Pods only; and for kinds for which
// the user says when they are healthy.
func (r Rules) ends(ctx context.Context, live *unstructured.Unstructured) (State, string, bool, error) {
	suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend")
	switch kind := inventory.IDOf(live).GroupKind().String(); {
	case kind == "Pod":
		state, message, done := endOfPod(live)
		return state, message, done, nil
	case kind == "Job.batch" && suspended && live.GetDeletionTimestamp() == nil:
		return InProgress, "the Job is suspended", false, nil
	case kind != "Job.batch" && r.byKind[live.GroupVersionKind()] == nil:
		if live.GetDeletionTimestamp() != nil {
			return Terminating, "it is being deleted", false, nil
		}
		return "", "", true, nil
	}
	return r.assess(ctx, live)
}

// endOfPod expects a Pod to succeed: being ready is not enough.
func endOfPod(live *unstructured.Unstructured) (State, string, bool) {
	pod := &corev1.Pod{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, pod) != nil {
		return Unknown, "its status cannot be read", false
	}
	_, cause := podCause(pod)
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		return "", "", true
	case pod.Status.Phase == corev1.PodFailed:
		return Failed, "the Pod failed" + after(cause), false
	case pod.DeletionTimestamp != nil:
		return Terminating, "it is being deleted", false
	}
	return InProgress, "the Pod has not ended yet" + after(cause), false
}

func after(cause string) string {
	if cause == "" || strings.HasSuffix(cause, "is not ready") {
		return ""
	}
	return ": " + cause
}
