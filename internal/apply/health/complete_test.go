// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// An object that runs once is done when it has succeeded; being ready is not enough.
func TestCompletion(t *testing.T) {
	tests := map[string]struct {
		reason, object string
		uid            string
		want           health.Completion
	}{
		"pod runs": {"a ready Pod has not ended", `{apiVersion: v1, kind: Pod, metadata: {name: x, uid: u}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, "u",
			health.Completion{State: health.InProgress, Message: "the Pod has not ended yet"}},
		"pod pulls": {"the cause is told", `{apiVersion: v1, kind: Pod, metadata: {name: x, uid: u}, status: {phase: Pending, containerStatuses: [{name: c, image: i, state: {waiting: {reason: ErrImagePull, message: gone}}}]}}`, "u",
			health.Completion{State: health.InProgress, Message: `the Pod has not ended yet: container c cannot pull image "i": gone`}},
		"pod succeeded":  {"that is what it was for", `{apiVersion: v1, kind: Pod, metadata: {name: x, uid: u}, status: {phase: Succeeded}}`, "u", health.Completion{Done: true}},
		"pod failed":     {"it does not run again", `{apiVersion: v1, kind: Pod, metadata: {name: x, uid: u}, status: {phase: Failed, containerStatuses: [{name: c, state: {terminated: {exitCode: 3}}}]}}`, "u", health.Completion{State: health.Failed, Message: "the Pod failed: container c keeps crashing with exit code 3"}},
		"job complete":   {"likewise", `{apiVersion: batch/v1, kind: Job, metadata: {name: x, uid: u}, status: {conditions: [{type: Complete, status: "True"}]}}`, "u", health.Completion{Done: true}},
		"job suspended":  {"which is health, but no end", `{apiVersion: batch/v1, kind: Job, metadata: {name: x, uid: u}, spec: {suspend: true}}`, "u", health.Completion{State: health.InProgress, Message: "the Job is suspended"}},
		"job failed":     {"it will not be retried", `{apiVersion: batch/v1, kind: Job, metadata: {name: x, uid: u}, status: {conditions: [{type: Failed, status: "True", message: deadline}]}}`, "u", health.Completion{State: health.Failed, Message: "the Job failed: deadline"}},
		"anything else":  {"it is there", `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, uid: u}}`, "u", health.Completion{Done: true}},
		"claim":          {"helm waits for Jobs and Pods only (flux-f33)", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, uid: u}, spec: {storageClassName: late}, status: {phase: Pending}}`, "u", health.Completion{Done: true}},
		"deployment":     {"likewise", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, uid: u, generation: 1}}`, "u", health.Completion{Done: true}},
		"deleted":        {"it does not stay", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, uid: u, deletionTimestamp: "2026-01-01T00:00:00Z"}}`, "u", health.Completion{State: health.Terminating, Message: "it is being deleted"}},
		"another object": {"another client replaced it, and its result is unknown", `{apiVersion: v1, kind: Pod, metadata: {name: x, uid: v}, status: {phase: Succeeded}}`, "u", health.Completion{State: health.Missing, Message: "it was deleted before it was seen to end"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.object)
			c := &cluster{objects: map[string]*unstructured.Unstructured{"x": object}}
			got, err := health.Rules{}.Complete(t.Context(), c, plan.Object{ID: inventory.IDOf(object)}, tc.uid)
			if err != nil || got.Done != tc.want.Done || got.State != tc.want.State || !strings.HasPrefix(got.Message, tc.want.Message) {
				t.Errorf("%s: got %+v, %v, want %+v", tc.reason, got, err, tc.want)
			}
		})
	}
	if got, err := (health.Rules{}).Complete(t.Context(), &cluster{}, plan.Object{ID: inventory.ID{Kind: "Pod", Name: "x"}}, "u"); err != nil || got.State != health.Missing || !got.Ended() {
		t.Errorf("what is gone: %+v, %v", got, err)
	}
}
