// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/autoscaling"
	"github.com/satchel-dev/satchel/tests/answers"
)

// Of more autoscalers than are read, the rest counts as not known.
func TestAutoscalersBeyondTheBound(t *testing.T) {
	const path = "/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers"
	version := map[string]any{"groupVersion": "autoscaling/v2", "version": "v2"}
	for name, tc := range map[string]struct {
		pages   int
		refused answers.Reason
		scalers int
		unread  string
	}{
		"one page":  {pages: 1, scalers: 500},
		"the bound": {pages: 10, scalers: 5000},
		"more":      {pages: 11, scalers: 5000, unread: "namespace a has more than 5000 horizontalpodautoscalers.autoscaling; the others were not read"},
		"forbidden": {pages: 1, refused: answers.Forbidden, unread: "the ServiceAccount has no permission to list horizontalpodautoscalers.autoscaling in namespace a"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &answers.Server{Refusals: map[string]answers.Reason{path: tc.refused}, Objects: map[string]any{
				"/api":  map[string]any{"kind": "APIVersions", "versions": []any{}},
				"/apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{map[string]any{"name": "autoscaling", "versions": []any{version}, "preferredVersion": version}}},
				"/apis/autoscaling/v2": map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "autoscaling/v2", "resources": []any{
					map[string]any{"name": "horizontalpodautoscalers", "kind": "HorizontalPodAutoscaler", "namespaced": true, "verbs": []string{"list"}}}},
			}}
			for page := range tc.pages {
				var items []any
				for i := range 500 {
					items = append(items, map[string]any{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": map[string]any{"name": fmt.Sprint("x", i), "namespace": "a"},
						"spec": map[string]any{"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}})
				}
				at, metadata := path, map[string]any{}
				if page > 0 {
					at += fmt.Sprint("?", page)
				}
				if page+1 < tc.pages {
					metadata["continue"] = fmt.Sprint(page + 1)
				}
				server.Objects[at] = map[string]any{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscalerList", "metadata": metadata, "items": items}
			}
			scalers, unread, err := autoscalersIn(t.Context(), answers.Client(t, server), "a")
			if err != nil || len(scalers) != tc.scalers || unread != (autoscaling.Unread{Horizontal: tc.unread}) {
				t.Errorf("%d autoscalers, %+v, %v", len(scalers), unread, err)
			}
		})
	}
}

// The replicas of a custom resource are guessed where its CRD may not be read, or is none, and not because of another error. The CRD is
// read once.
func TestReplicasOfCustomResources(t *testing.T) {
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/workers.x.org"
	crd := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "workers.x.org"},
		"spec": map[string]any{"versions": []any{map[string]any{"name": "v1", "subresources": map[string]any{"scale": map[string]any{"specReplicasPath": ".spec.count"}}}}}}
	for name, tc := range map[string]struct {
		refused      answers.Reason
		want, failed string
	}{
		"by the CRD":    {want: ".spec.count"},
		"not permitted": {refused: answers.Forbidden, want: ".spec.number"},
		"no CRD":        {refused: answers.NotFound, want: ".spec.number"},
		"an error":      {refused: answers.BadRequest, failed: "reading CRD workers.x.org: "},
	} {
		t.Run(name, func(t *testing.T) {
			server := &answers.Server{Objects: map[string]any{path: crd}, Refusals: map[string]answers.Reason{path: tc.refused}}
			reader := definitionReader{client: answers.Client(t, server), read: map[string]definition{}}
			leaving := []autoscaling.Leaving{
				{Path: fieldpath.MakePathOrDie("spec", "number"), Value: int64(3)},
				{Path: fieldpath.MakePathOrDie("spec", "text"), Value: "3"},
			}
			for _, name := range []string{"one", "two"} {
				object := plan.Object{ID: inventory.ID{Group: "x.org", Kind: "Worker", Namespace: "a", Name: name}, Kind: plan.Kind{Resource: schema.GroupVersionResource{Group: "x.org", Version: "v1", Resource: "workers"}}, Desired: &unstructured.Unstructured{}}
				got, err := reader.replicasOf(t.Context(), &plan.Input{}, object, leaving)
				if (err == nil) != (tc.failed == "") || err != nil && !strings.Contains(err.Error(), tc.failed) || err == nil && got.String() != tc.want {
					t.Errorf("%s: got %s, %v", name, got, err)
				}
			}
			if asked := server.Asked(path); asked != 1 {
				t.Errorf("the CRD was read %d times", asked)
			}
		})
	}
}
