// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const skiff = `apiVersion: apps/v1
kind: Deployment
metadata: {name: skiff, labels: {tier: front}}
spec:
  replicas: 0
  selector: {matchLabels: {app: skiff}}
  template:
    metadata: {labels: {app: skiff}}
    spec:
      containers:
      - name: s
        image: example.org/s:1
        env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: skiff, key: t, optional: true}}}]
`

// flux-f19: another client sets the value of a variable beside valueFrom, and a label. Both are undone at once, and an event names
// the field and the client.
func TestF46DriftInAUnionIsCorrected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": {Data: []byte(skiff)}})
	key := r.deploy(t, namespace, "app", rarely)
	r.ready(t, key, published.Revision)

	patch := `{"metadata":{"labels":{"tier":"back"}},"spec":{"template":{"spec":{"containers":[{"name":"s","env":[{"name":"TOKEN","value":"oops","valueFrom":null}]}]}}}}`
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "skiff"}}
	if err := r.admin.Patch(t.Context(), object, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner("kubectl-set")); err != nil {
		t.Fatal(err)
	}
	r.eventually(t, t.Context(), "the drift is corrected", func(ctx context.Context) (bool, string) {
		if err := r.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err.Error()
		}
		env := object.Spec.Template.Spec.Containers[0].Env[0]
		return env.Value == "" && env.ValueFrom != nil && object.Labels["tier"] == "front", env.String()
	})
	r.told(t, namespace, "FieldsRemoved: removed fields that exclude what the bundle sets: Deployment.apps "+namespace+`/skiff: .spec.template.spec.containers[name="s"].env[name="TOKEN"].value of field manager "kubectl-set"`)
}

const skiffScaler = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: skiff}
spec: {minReplicas: 3, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: skiff}}
`

// flux-f34: replicas leave the bundle in the revision that brings an autoscaler. They never change, an event names the autoscaler, and the
// status says what the plan keeps; without an autoscaler it says what they become.
func TestF48HandOverInAnUpgrade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	three := strings.Replace(skiff, "replicas: 0", "replicas: 3", 1)
	unset := strings.Replace(skiff, "  replicas: 0\n", "", 1)
	for name, tc := range map[string]struct {
		second string
		want   int64
		told   string
		warns  string
	}{
		"with an autoscaler": {unset + "---\n" + skiffScaler, 3, "FieldsHandedOver: kept fields that left the bundle: Deployment.apps NS/skiff: .spec.replicas (3) for HorizontalPodAutoscaler.autoscaling NS/skiff", "Deployment.apps NS/skiff: keeps .spec.replicas (3) for HorizontalPodAutoscaler.autoscaling NS/skiff"},
		"without one":        {unset, 1, "", "Deployment.apps NS/skiff: .spec.replicas 3 -> 1 (default), because it leaves the bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": {Data: []byte(three)}})
			key := r.deploy(t, namespace, "app", rarely)
			r.applied(t, namespace, key.Name, first.Revision, 1)
			objects, err := dynamic.NewForConfig(r.cp.RESTConfig())
			if err != nil {
				t.Fatal(err)
			}
			deployments := objects.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(namespace)
			events, err := deployments.Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer events.Stop()
			second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": {Data: []byte(tc.second)}})
			r.applied(t, namespace, key.Name, second.Revision, strings.Count(tc.second, "kind: ")-strings.Count(tc.second, ", kind: "))
			last, err := deployments.Get(t.Context(), "skiff", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for event := range events.ResultChan() {
				now, _ := event.Object.(*unstructured.Unstructured)
				if now == nil {
					t.Fatalf("the watch ended: %v", event)
				}
				if got, _, _ := unstructured.NestedInt64(now.Object, "spec", "replicas"); got != 3 && got != tc.want {
					t.Errorf("replicas were %d", got)
				}
				if now.GetResourceVersion() == last.GetResourceVersion() {
					break
				}
			}
			if got, _, _ := unstructured.NestedInt64(last.Object, "spec", "replicas"); got != tc.want {
				t.Errorf("got %d replicas, want %d", got, tc.want)
			}
			text := func(template string) string { return strings.ReplaceAll(template, "NS", namespace) }
			r.until(t, key, "the status says what becomes of the replicas", func(d *v1alpha1.BundleDeployment) bool {
				return slices.Contains(d.Status.Warnings, text(tc.warns))
			})
			if tc.told != "" {
				r.told(t, namespace, text(tc.told))
			}
		})
	}
}
