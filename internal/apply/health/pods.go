// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// podLimit is how many Pods of a workload are read.
const podLimit = 50

// The ranks of causes: what cannot recover without a change comes first.
const (
	rankImage = iota
	rankConfig
	rankCrash
	rankFailed
	rankUnschedulable
	rankNotReady
	rankNone
)

// cause names, in words that stay the same between retries, why the Pods of a
// workload do not run; empty when they do not show it.
func (c checking) cause(ctx context.Context, workload *unstructured.Unstructured) string {
	selector, ok := selectorOf(workload)
	if !ok {
		return ""
	}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	items, err := c.client.List(ctx, tenant.Ref{Resource: pods, Namespace: workload.GetNamespace()}, selector, podLimit)
	if apierrors.IsForbidden(err) {
		return "the ServiceAccount may not list its Pods to find the cause"
	}
	if err != nil {
		return "" // the workload's own message stands
	}
	best, words := rankNone, ""
	slices.SortFunc(items, func(a, b unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	for i := range items {
		pod := &corev1.Pod{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(items[i].Object, pod) != nil {
			continue
		}
		if rank, text := podCause(pod); rank < best {
			best, words = rank, fmt.Sprintf("Pod %s: %s", pod.Name, text)
		}
	}
	return words
}

func selectorOf(workload *unstructured.Unstructured) (string, bool) {
	fields, found, err := unstructured.NestedMap(workload.Object, "spec", "selector")
	if !found || err != nil {
		return "", false
	}
	if _, plain := fields["matchLabels"]; !plain && workload.GetKind() == "ReplicationController" {
		fields = map[string]any{"matchLabels": fields}
	}
	labels := &metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, labels) != nil {
		return "", false
	}
	selector, err := metav1.LabelSelectorAsSelector(labels)
	if err != nil || selector.Empty() {
		return "", false
	}
	return selector.String(), true
}

// podCause ranks and describes why one Pod is not ready.
func podCause(pod *corev1.Pod) (int, string) {
	best, words := rankNone, ""
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if rank, text := containerCause(container); rank < best {
			best, words = rank, fmt.Sprintf("container %s %s", container.Name, text)
		}
	}
	if pod.Status.Phase == corev1.PodFailed && best > rankFailed {
		best, words = rankFailed, strings.TrimSpace("failed: "+pod.Status.Reason+" "+pod.Status.Message)
	}
	for _, condition := range pod.Status.Conditions {
		unschedulable := condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse
		if unschedulable && best > rankUnschedulable {
			best, words = rankUnschedulable, "cannot be scheduled: "+strings.TrimSuffix(condition.Message, ".")
		}
	}
	if best == rankNone && pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName != "" {
		best, words = rankNotReady, "is scheduled and has not started"
	}
	return best, words
}

// containerCause ranks and describes the state of one container.
func containerCause(container corev1.ContainerStatus) (int, string) {
	if waiting := container.State.Waiting; waiting != nil {
		return waitingCause(container, waiting)
	}
	if end := container.State.Terminated; end != nil && end.ExitCode != 0 {
		return rankCrash, crash(end)
	}
	if container.State.Running != nil && !container.Ready {
		if end := container.LastTerminationState.Terminated; end != nil && end.ExitCode != 0 {
			return rankCrash, crash(end)
		}
		return rankNotReady, "runs and is not ready"
	}
	return rankNone, ""
}

func waitingCause(container corev1.ContainerStatus, waiting *corev1.ContainerStateWaiting) (int, string) {
	switch waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError":
		return rankImage, fmt.Sprintf("cannot pull image %q%s", container.Image, pullDetail(waiting))
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return rankConfig, "cannot be started: " + waiting.Message
	case "CrashLoopBackOff":
		if end := container.LastTerminationState.Terminated; end != nil {
			return rankCrash, crash(end)
		}
		return rankCrash, "keeps crashing"
	}
	return rankNone, ""
}

// pullDetail is why the pull failed, if the kubelet says so both while it tries
// and while it waits: a message must not flap between the two.
func pullDetail(waiting *corev1.ContainerStateWaiting) string {
	_, detail, found := strings.Cut(waiting.Message, "ErrImagePull: ")
	switch {
	case found:
		return ": " + detail
	case waiting.Reason == "ErrImagePull" && waiting.Message != "":
		return ": " + waiting.Message
	}
	return ""
}

func crash(end *corev1.ContainerStateTerminated) string {
	words := fmt.Sprintf("keeps crashing with exit code %d", end.ExitCode)
	if end.Reason != "" && end.Reason != "Error" {
		words += " (" + end.Reason + ")"
	}
	return words
}
