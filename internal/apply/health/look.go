// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Needs tells whether the health check of a kind needs the whole object; otherwise objects of it
// are healthy as soon as they exist, and their metadata is enough.
func (r Rules) Needs(kind schema.GroupVersionKind) bool {
	return !AlwaysCurrent(kind.GroupKind()) || r.byKind[kind] != nil
}

// Look returns the health of an object that the caller has read, by the rules; the state is empty
// when it is healthy. For a Pod the message says why its containers do not run. Nothing is read but for a claim that is not bound.
func (r Rules) Look(ctx context.Context, client ClaimReader, live *unstructured.Unstructured) (State, string, error) {
	kind := live.GroupVersionKind()
	if live.GetDeletionTimestamp() != nil {
		return Terminating, "it is being deleted", nil
	}
	if !r.Needs(kind) {
		return "", "", nil
	}
	state, message, ok, err := r.assessWith(ctx, client, live)
	if ok || err != nil {
		return "", "", err
	}
	if inventory.IDOf(live).GroupKind() == (schema.GroupKind{Kind: "Pod"}) {
		pod := &corev1.Pod{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, pod) == nil {
			if _, words := podCause(pod); words != "" {
				message = words
			}
		}
	}
	return state, message, nil
}

// Selector is the label selector of a workload's Pods, or of the controller of its Pods; false when it has none.
func Selector(workload *unstructured.Unstructured) (string, bool) { return selectorOf(workload) }
