// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/tests/answers"
)

// F57: a Service is read before it is deleted for another object, if it is to be deleted. What says why it stays has the cause.
func TestF57ServicesThatStay(t *testing.T) {
	const path = "/api/v1/namespaces/a/services/old"
	service := func(kind string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "old", "namespace": "a"}, "spec": map[string]any{"type": kind}}
	}
	for name, tc := range map[string]struct {
		live    any
		refused answers.Reason
		how     plan.How
		asked   int
		deleted int
		stays   string
	}{
		"of the cluster":  {live: service("ClusterIP"), how: plan.Delete, asked: 1, deleted: 2},
		"with a balancer": {live: service("LoadBalancer"), how: plan.Delete, asked: 1, stays: "its load balancer might get another address"},
		"gone meanwhile":  {refused: answers.NotFound, how: plan.Delete, asked: 1, deleted: 2},
		"not permitted":   {refused: answers.Forbidden, how: plan.Delete, asked: 1, stays: "it cannot be read: refused as Forbidden"},
		"an error":        {refused: answers.BadRequest, how: plan.Delete, asked: 1, stays: "it cannot be read: refused as BadRequest"},
		"goes already":    {live: service("LoadBalancer"), how: plan.Await, deleted: 2},
		"is not deleted":  {live: service("LoadBalancer"), how: plan.Release, deleted: 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := &answers.Server{Objects: map[string]any{path: tc.live}, Refusals: map[string]answers.Reason{path: tc.refused}}
			deletion := deletionOf("Service", "services", "a", "old")
			deletion.How = tc.how
			deletions := []plan.Deletion{deletion}
			if tc.stays == "" {
				deletions = append(deletions, deletionOf("ConfigMap", "configmaps", "a", "other"))
			}
			var p plan.Plan
			p.PruneFirst = []plan.DeletionStage{{Deletions: deletions}}
			refused := &objecterror.Error{ID: inventory.ID{Kind: "Ingress", Namespace: "b", Name: "new"}, Reason: metav1.StatusReasonBadRequest,
				Message: `admission webhook "x.org" denied the request: already there`}
			found, final := successors(t.Context(), answers.Client(t, server), p, []*objecterror.Error{refused}, nil)
			deleted := 0
			for _, stage := range found.Deletions {
				deleted += len(stage.Deletions)
			}
			if deleted != tc.deleted || server.Asked(path) != tc.asked {
				t.Errorf("%d are deleted, the Service was read %d times: %v %v", deleted, server.Asked(path), found, final)
			}
			if tc.stays != "" && (len(final) != 1 || !strings.Contains(final[0].Message, "Service a/old ("+tc.stays)) {
				t.Errorf("want %q in %v", tc.stays, final)
			}
		})
	}
}
