// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// longest is six times the target for the repair of one object, a second.
const longest = 6 * time.Second

// F33: one object of the applied revision cannot be read, planned or written. Drift of
// all others is corrected at once by watches, and the message names the one.
func TestF33TheRestIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tests := map[string]struct {
		reason string
		// object is the one that cannot be kept, and takes says how that comes about.
		object func(namespace, elsewhere, group string) string
		takes  func(t *testing.T, namespace, elsewhere, group string)
		named  string
		// unplanned: the plan is refused for it.
		unplanned bool
	}{
		"kind gone": {
			reason: "the CRD of a custom resource was deleted",
			object: func(_, _, group string) string { return string(gadget(group, "one").Data) },
			takes:  func(t *testing.T, _, _, group string) { r.delete(t, crdObject(group)); r.gone(t, crdObject(group)) },
			named:  "Gadget.", unplanned: true,
		},
		"namespace gone": {
			reason: "another namespace that the bundle installs into was deleted",
			object: func(_, elsewhere, _ string) string {
				return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far, namespace: " + elsewhere + "}\ndata: {value: one}\n"
			},
			takes: func(t *testing.T, _, elsewhere, _ string) {
				r.delete(t, object("v1", "Namespace", "", elsewhere))
				_ = r.admin.Delete(t.Context(), aConfigMap(elsewhere, "far")) // as the namespace controller does, sooner or later
			},
			named: "namespace \"", unplanned: true,
		},
		"collision": {
			reason: "another tool created the object in place of the one that was deleted",
			object: func(_, _, _ string) string { return string(configMap("taken", "one").Data) },
			takes: func(t *testing.T, namespace, _, _ string) {
				key := client.ObjectKey{Namespace: namespace, Name: "app"}
				r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
				r.until(t, key, "suspended", func(*v1alpha1.BundleDeployment) bool { return true })
				r.delete(t, aConfigMap(namespace, "taken"))
				r.create(t, foreign(namespace, "taken"))
				r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = false })
			},
			named: "/taken exists already", unplanned: true,
		},
		"permission gone": {
			reason: "the ServiceAccount may not write one of the kinds any more",
			object: func(_, _, _ string) string {
				return "apiVersion: v1\nkind: Service\nmetadata: {name: shut}\nspec: {ports: [{port: 80}]}\n"
			},
			takes: func(t *testing.T, namespace, _, _ string) {
				r.narrow(t, namespace)
				r.delete(t, object("v1", "Service", namespace, "shut"))
			},
			named: "services", unplanned: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, elsewhere := r.namespace(t), r.namespace(t)
			group := r.group(t, namespace)
			if tc.named == "Gadget." {
				other := r.publish(t, namespace, "crds", "v1", fstest.MapFS{"crd.yaml": crd(group)})
				r.ready(t, r.deploy(t, namespace, "crds", rarely), other.Revision)
				r.edit(t, client.ObjectKey{Namespace: namespace, Name: "crds"}, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
			}
			files := fstest.MapFS{"z.yaml": file(tc.object(namespace, elsewhere, group)), "w.yaml": workload("web", "example.org/web")}
			for _, name := range []string{"edited", "deleted"} {
				files[name+".yaml"] = configMap(name, "one")
			}
			published := r.publish(t, namespace, "app", "v1", files)
			key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
				rarely(d)
				d.Spec.RetryInterval = v1alpha1.Duration{Duration: 10 * time.Minute}
			})
			r.ready(t, key, published.Revision)
			tc.takes(t, namespace, elsewhere, group)
			r.until(t, key, "the object is named", func(d *v1alpha1.BundleDeployment) bool {
				return conditions.IsFalse(d, meta.ReadyCondition) && strings.Contains(conditions.GetMessage(d, meta.ReadyCondition), tc.named)
			})
			for round := range 2 { // also while it is known that one is in the way
				started := time.Now()
				r.patch(t, aConfigMap(namespace, "edited"), fmt.Sprintf(`{"data":{"value":"theirs %d"}}`, round))
				r.delete(t, aConfigMap(namespace, "deleted"))
				r.untilValue(t, namespace, "edited", "one")
				r.untilValue(t, namespace, "deleted", "one")
				if took := time.Since(started); took > longest {
					t.Errorf("%s: the rest was put back after %s", tc.reason, took)
				}
			}
			r.handled(t, key) // everything is compared
			d := r.until(t, key, "the object is named", func(d *v1alpha1.BundleDeployment) bool {
				message := conditions.GetMessage(d, meta.ReadyCondition)
				return strings.Contains(message, tc.named) && strings.Contains(message, "is kept from drifting, but for 1 of its objects")
			})
			if healthy := conditions.Get(d, v1alpha1.HealthyCondition); healthy.Status == "True" {
				t.Errorf("%s: %s", tc.reason, describe(d))
			}
			if planned := conditions.Get(d, v1alpha1.PlannedCondition); tc.unplanned && (planned.Status != "False" || !strings.Contains(planned.Message, tc.named)) {
				t.Errorf("%s: the condition does not name the object: %s", tc.reason, describe(d))
			}
		})
	}
}

// narrow removes the permission to write Services from the ServiceAccount of a
// namespace.
func (r *rig) narrow(t *testing.T, namespace string) {
	t.Helper()
	role := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"configmaps", "deployments", "pods", "events", "secrets"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces", "services"}, Verbs: []string{"get", "list", "watch"}},
	}}
	role.Name = namespace + "-narrow"
	r.create(t, role)
	t.Cleanup(func() { // the deployment is removed with all permissions
		if err := installation.Admin(context.WithoutCancel(t.Context()), r.admin, namespace, "installer"); err != nil {
			t.Error(err)
		}
	})
	if err := installation.Account(t.Context(), r.admin, namespace, "installer", role.Name, namespace); err != nil {
		t.Fatal(err)
	}
	wide := &rbacv1.ClusterRoleBinding{}
	wide.Name = namespace + "-installer"
	r.delete(t, wide)
}
