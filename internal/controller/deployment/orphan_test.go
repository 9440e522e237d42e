// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/runtime/conditions"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// F41: a removal that fails for lack of its ServiceAccount or of permissions, or waits for a finalizer, ends
// once spec.deletionPolicy is Orphan, whenever that is set. What is kept is named in an event.
func TestF41OrphanAlwaysEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const unmarked = "LeftBehind: the removal was abandoned as spec.deletionPolicy is Orphan; 2 objects stay with their labels, as they could not be annotated as orphaned: " +
		"ConfigMap NAMESPACE/a, ConfigMap NAMESPACE/b; it failed with: "
	cases := map[string]struct {
		hinder func(t *testing.T, namespace string)
		// stuck is the message of the removal before it is set; goes tells whether objects are deleted with
		// it.
		stuck string
		goes  bool
		told  string
	}{
		"ServiceAccount gone": {r.deleteAccount, "/installer does not exist", false, unmarked},
		"permissions gone": {
			func(t *testing.T, namespace string) {
				t.Helper()
				r.delete(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-installer"}})
			},
			"is forbidden", false, unmarked,
		},
		"finalizer of another controller": {
			func(t *testing.T, namespace string) {
				t.Helper()
				r.patch(t, aConfigMap(namespace, "a"), `{"metadata":{"finalizers":["example.org/hold"]}}`)
				t.Cleanup(func() {
					patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
					_ = r.admin.Patch(context.WithoutCancel(t.Context()), aConfigMap(namespace, "a"), patch)
				})
			},
			"example.org/hold", true, "Kept: ConfigMap NAMESPACE/a is not kept: it is being deleted already",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
			key := r.deploy(t, namespace, "app", quick)
			r.ready(t, key, published.Revision)
			tc.hinder(t, namespace)
			r.startRemoval(t, key)
			r.until(t, key, "the removal is stuck", func(d *v1alpha1.BundleDeployment) bool {
				return strings.Contains(conditions.GetMessage(d, "Ready"), tc.stuck)
			})
			r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.DeletionPolicy = v1alpha1.DeletionOrphan })
			r.remove(t, key)
			r.told(t, namespace, strings.ReplaceAll(tc.told, "NAMESPACE", namespace))
			if !tc.goes {
				r.must(t, aConfigMap(namespace, "a"))
				r.must(t, aConfigMap(namespace, "b"))
			}
		})
	}
}
