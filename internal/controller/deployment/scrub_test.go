// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// I8: a new process has not read the Secrets yet. Messages of the API server about a removal are still shown without their
// values, and not at all if the Secrets cannot be read any more.
func TestI8NothingIsToldBeforeSecretsAreRead(t *testing.T) {
	t.Parallel()
	for name, readable := range map[string]bool{"readable": true, "gone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			namespace := r.namespace(t)
			r.keep(t, namespace, "db", map[string]string{"kind": canary})
			r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "${kind}")})
			key := r.deploy(t, namespace, "app", both(variables("db"), left))
			t.Cleanup(func() { r.undrive(t, key) })
			d := r.drive(t, key, nil)
			d.ready(t)
			lift := r.refuse(t, namespace, policy{
				operation: admissionv1.Delete, resource: "configmaps", rule: "false", message: "'kept, for its value is ' + oldObject.data.value",
			}, func(ctx context.Context) error {
				probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
				return r.admin.Delete(ctx, probe, client.DryRunAll)
			})
			defer lift()
			if !readable {
				r.delete(t, object("v1", "Secret", namespace, "db"))
			}
			d = d.again(t, nil)
			r.startRemoval(t, key)
			if _, err := d.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			told := describe(d.deployment(t))
			if d.heard(canary) || strings.Contains(told, canary) {
				t.Errorf("the value of the Secret was told:\n%s", told)
			}
			want := "kept, for its value is (redacted)"
			if !readable {
				want = "is not shown, since it may contain values of the Secrets"
			}
			if message := conditions.GetMessage(d.deployment(t), meta.ReadyCondition); !strings.Contains(message, want) {
				t.Errorf("want it to say %q:\n%s", want, told)
			}
		})
	}
}
