// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

var web = inventory.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}

func requests(container, list, resource string) fieldpath.Path {
	return fieldpath.MakePathOrDie("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", container), "resources", list, resource)
}

func TestOf(t *testing.T) {
	const head = "metadata: {name: a, namespace: shop}\nspec: "
	for name, tc := range map[string]struct {
		object string
		target inventory.ID
		sets   fieldpath.Path
		not    fieldpath.Path
	}{
		"horizontal":        {"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n" + head + "{scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}", web, Replicas, requests("web", "requests", "cpu")},
		"horizontal, older": {"apiVersion: autoscaling/v2beta2\nkind: HorizontalPodAutoscaler\n" + head + "{scaleTargetRef: {apiVersion: apps/v1beta1, kind: Deployment, name: web}}", web, Replicas, nil},
		"core group":        {"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n" + head + "{scaleTargetRef: {apiVersion: v1, kind: ReplicationController, name: web}}", inventory.ID{Kind: "ReplicationController", Namespace: "shop", Name: "web"}, Replicas, nil},
		"KEDA, defaults":    {"apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\n" + head + "{scaleTargetRef: {name: web}}", web, Replicas, nil},
		"KEDA, another":     {"apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\n" + head + "{scaleTargetRef: {apiVersion: example.org/v1, kind: Fleet, name: web}}", inventory.ID{Group: "example.org", Kind: "Fleet", Namespace: "shop", Name: "web"}, Replicas, nil},
		"vertical":          {"apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\n" + head + "{targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}", web, requests("web", "limits", "memory"), Replicas},
		"vertical, init":    {"apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\n" + head + "{targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}", web, requests("web", "requests", "cpu"), requests("web", "requests", "nvidia.com/gpu")},
		"policy of another": {"apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\n" + head + "{targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, resourcePolicy: {containerPolicies: [{containerName: side, mode: 'Off'}]}}", web, requests("web", "requests", "cpu"), requests("side", "requests", "cpu")},
		"switched off":      {"apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\n" + head + "{targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, updatePolicy: {updateMode: 'Off'}}", inventory.ID{}, nil, nil},
		"being deleted":     {"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a, namespace: shop, deletionTimestamp: '2026-01-01T00:00:00Z'}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}", inventory.ID{}, nil, nil},
		"another group":     {"apiVersion: example.org/v1\nkind: HorizontalPodAutoscaler\n" + head + "{scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}", inventory.ID{}, nil, nil},
		"malformed":         {"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n" + head + "{scaleTargetRef: [a]}", inventory.ID{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			scaler, found := Of(parse(t, tc.object))
			if found != (tc.target != inventory.ID{}) || found && scaler.Target != tc.target {
				t.Fatalf("got %+v, %v", scaler, found)
			}
			if tc.sets != nil && !scaler.Sets(tc.sets, Replicas) || tc.not != nil && scaler.Sets(tc.not, Replicas) {
				t.Errorf("it sets %s: %v, %s: %v", tc.sets, scaler.Sets(tc.sets, Replicas), tc.not, scaler.Sets(tc.not, Replicas))
			}
		})
	}
}

func TestDecide(t *testing.T) {
	horizontal := Autoscaler{ID: inventory.ID{Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Namespace: "shop", Name: "a"}, Target: web}
	starts, elsewhere := horizontal, horizontal
	starts.fromZero, elsewhere.Target.Namespace = true, "other"
	leaving := func(value any) []Leaving { return []Leaving{{Path: Replicas, Value: value}} }
	for name, tc := range map[string]struct {
		sight   Sight
		scalers []Autoscaler
		kept    int
		reset   int
		ended   bool
	}{
		"taken over":                          {Sight{Leaving: leaving(int64(3))}, []Autoscaler{elsewhere, horizontal}, 1, 0, false},
		"nothing takes over":                  {Sight{Leaving: leaving(int64(3))}, []Autoscaler{elsewhere}, 0, 1, false},
		"none at all":                         {Sight{Leaving: leaving(int64(3)), Unread: Unread{Horizontal: "forbidden"}}, nil, 0, 1, false},
		"no replicas":                         {Sight{Leaving: leaving(int64(0))}, []Autoscaler{horizontal}, 0, 1, false},
		"no replicas, it starts":              {Sight{Leaving: leaving(int64(0))}, []Autoscaler{starts}, 1, 0, false},
		"scaled, and still":                   {Sight{Scaled: true}, []Autoscaler{horizontal}, 0, 0, false},
		"scaled, not any more":                {Sight{Scaled: true}, []Autoscaler{elsewhere}, 0, 0, true},
		"scaled, which is not known":          {Sight{Scaled: true, Unread: Unread{Horizontal: "forbidden"}}, nil, 0, 0, false},
		"scaled, vertical ones are not known": {Sight{Scaled: true, Unread: Unread{Vertical: "forbidden"}}, nil, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.sight.Replicas = Replicas
			h := tc.sight.Decide(web, tc.scalers)
			if len(h.Kept) != tc.kept || len(h.Reset) != tc.reset || h.Ended != tc.ended {
				t.Errorf("got %+v", h)
			}
		})
	}
}

// FuzzOf: an autoscaler is read without a panic, and has a target in its own namespace.
func FuzzOf(f *testing.F) {
	f.Add(`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"a","namespace":"shop"},"spec":{"minReplicas":"x","scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}`)
	f.Add(`{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"namespace":"shop"},"spec":{"targetRef":{"apiVersion":"//","kind":1},"resourcePolicy":{"containerPolicies":[1,{"controlledResources":[1]}]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			return
		}
		scaler, found := Of(object)
		if found && (scaler.Target.Namespace != object.GetNamespace() || scaler.Target.Name == "") {
			t.Errorf("%s: %+v", text, scaler)
		}
		scaler.Sets(Replicas, Replicas)
	})
}
