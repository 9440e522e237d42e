// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"testing"
	"testing/fstest"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
