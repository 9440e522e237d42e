// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/webhookserver"
	"github.com/satchel-dev/satchel/tests/answers"
)

// A workload behind a webhook is found by its labels, also without a kind in the list. One that is deleted after its health was
// checked is missing; another error says what could not be read.
func TestWorkloadsOnTheCluster(t *testing.T) {
	const services, deployments = "/api/v1/namespaces/a/services/hook", "/apis/apps/v1/namespaces/a/deployments"
	labels := map[string]any{"app": "hook"}
	workload := func(available int64) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"name": "hook", "namespace": "a", "generation": int64(1)},
			"spec":     map[string]any{"replicas": available, "template": map[string]any{"metadata": map[string]any{"labels": labels}}},
			"status":   map[string]any{"observedGeneration": int64(1), "availableReplicas": available, "replicas": available, "updatedReplicas": available, "readyReplicas": available, "conditions": []any{map[string]any{"type": "Available", "status": "True"}}},
		}
	}
	for name, tc := range map[string]struct {
		available int64
		refusals  map[string]answers.Reason
		state     health.State
		failed    string
	}{
		"available":         {available: 1},
		"without Pods":      {state: health.InProgress},
		"deleted meanwhile": {available: 1, refusals: map[string]answers.Reason{deployments + "/hook": answers.NotFound}, state: health.Missing},
		"not permitted":     {available: 1, refusals: map[string]answers.Reason{deployments + "/hook": answers.Forbidden}},
		"not readable":      {available: 1, refusals: map[string]answers.Reason{deployments + "/hook": answers.BadRequest}, failed: "reading Deployment.apps a/hook: "},
		"no Service":        {refusals: map[string]answers.Reason{services: answers.BadRequest}, failed: "reading Service a/hook: "},
		"no list":           {refusals: map[string]answers.Reason{deployments: answers.BadRequest}, failed: "listing the objects of kind Deployment in namespace a: "},
	} {
		t.Run(name, func(t *testing.T) {
			listed, live := workload(tc.available), workload(tc.available)
			live["apiVersion"], live["kind"] = "apps/v1", "Deployment"
			none := func(kind string) map[string]any {
				return map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{}, "items": []any{}}
			}
			client := answers.Client(t, &answers.Server{Refusals: tc.refusals, Objects: map[string]any{
				services:              map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "hook", "namespace": "a"}, "spec": map[string]any{"selector": labels}},
				deployments:           map[string]any{"apiVersion": "apps/v1", "kind": "DeploymentList", "metadata": map[string]any{}, "items": []any{listed}},
				deployments + "/hook": live,
				"/apis/apps/v1/namespaces/a/statefulsets": none("StatefulSetList"),
				"/apis/apps/v1/namespaces/a/daemonsets":   none("DaemonSetList"),
			}})
			id := inventory.ID{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "hook"}
			server, err := webhookserver.Find(t.Context(), client, nil, types.NamespacedName{Namespace: "a", Name: "hook"})
			if err == nil && (len(server.Workloads) != 1 || server.Workloads[0].ID != id) {
				t.Fatalf("found %+v", server)
			}
			var report health.Report
			if err == nil {
				fresh := map[inventory.ID]*unstructured.Unstructured{id: {Object: live}} // its health was checked
				_, report, err = webhookserver.Check(t.Context(), client, health.Rules{}, []webhookserver.Server{server}, fresh)
			}
			if (err == nil) != (tc.failed == "") || err != nil && !strings.Contains(err.Error(), tc.failed) {
				t.Fatalf("want %q, got %v", tc.failed, err)
			}
			if tc.state == "" && len(report.Unhealthy) > 0 || tc.state != "" && (len(report.Unhealthy) != 1 || report.Unhealthy[0].State != tc.state) {
				t.Errorf("want %q, got %+v", tc.state, report.Unhealthy)
			}
		})
	}
}
