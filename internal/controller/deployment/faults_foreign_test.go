// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// foreign is a ConfigMap as Helm creates it.
func foreign(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels:      map[string]string{"app.kubernetes.io/managed-by": "Helm"},
			Annotations: map[string]string{"meta.helm.sh/release-name": "theirs", "meta.helm.sh/release-namespace": namespace},
		},
		Data: map[string]string{"value": "theirs"},
	}
}

// F35: while the deployment is suspended, another tool deletes an object of it and creates
// one of its own with the same name. That one is neither overwritten nor deleted with the
// deployment. An object with the deployment's labels still belongs to it, whichever client
// created it.
func TestF35RecreatedByAnotherTool(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("theirs", "one"), "b.yaml": configMap("restored", "one"), "c.yaml": configMap("c", "one")})
	key := r.deploy(t, namespace, "app", rarely)
	r.ready(t, key, published.Revision)

	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
	r.until(t, key, "suspended", func(*v1alpha1.BundleDeployment) bool { return true })
	restored := r.must(t, aConfigMap(namespace, "restored"))
	for _, name := range []string{"theirs", "restored"} {
		r.delete(t, aConfigMap(namespace, name))
	}
	r.create(t, foreign(namespace, "theirs"))
	again := restored.DeepCopy() // as a backup restores it
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp"} {
		delete(again.Object["metadata"].(map[string]any), field) //nolint:forcetypeassert // every object has metadata
	}
	again.Object["data"] = map[string]any{"value": "old"}
	r.create(t, again)
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = false })

	d := r.until(t, key, "the collision is told", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.GetReason(d, meta.ReadyCondition) == v1alpha1.ReasonPlanRefused
	})
	if message := conditions.GetMessage(d, meta.ReadyCondition); !strings.Contains(message, "ConfigMap "+namespace+"/theirs exists already and belongs to Helm release") {
		t.Errorf("the message does not name the owner: %s", message)
	}
	r.untilValue(t, namespace, "restored", "one")
	if got := r.value(t, t.Context(), namespace, "theirs"); got != "theirs" {
		t.Errorf("the object of the other tool has %q", got)
	}
	r.remove(t, key)
	r.gone(t, aConfigMap(namespace, "restored"))
	if got := r.must(t, aConfigMap(namespace, "theirs")); got.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" || len(got.GetLabels()) != 1 {
		t.Errorf("the object of the other tool has the labels %v", got.GetLabels())
	}
}
