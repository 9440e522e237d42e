// SPDX-License-Identifier: Apache-2.0

package tree

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// LogContainer is one of a Pod.
type LogContainer struct {
	Name     string
	Restarts int64
	Running  bool
}

// LogContainers are a Pod's containers, in the order in which they start.
func LogContainers(body *unstructured.Unstructured) []LogContainer {
	pod := new(corev1.Pod)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(body.Object, pod) != nil {
		return nil
	}
	var found []LogContainer
	add := func(name string, statuses []corev1.ContainerStatus) {
		c := LogContainer{Name: name}
		for _, status := range statuses {
			if status.Name == name {
				c.Restarts, c.Running = int64(status.RestartCount), status.State.Running != nil
			}
		}
		found = append(found, c)
	}
	for _, c := range pod.Spec.InitContainers {
		add(c.Name, pod.Status.InitContainerStatuses)
	}
	for _, c := range pod.Spec.Containers {
		add(c.Name, pod.Status.ContainerStatuses)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		add(c.Name, pod.Status.EphemeralContainerStatuses)
	}
	return found
}
