// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/drift"
)

// TestT5PermissionTakenFromAWatch: a ServiceAccount loses the permission to watch, and gets it
// back. Its watch ends with the permission, the status says what is compared at the interval
// only, and drift from meanwhile is corrected when it is watched again.
func TestT5PermissionTakenFromAWatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "watcher"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}},
	}}
	r.create(t, role)
	r.bind(t, namespace, "watcher", "watcher")
	r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
		rarely(d)
		d.Labels = map[string]string{driven: "true"}
		d.Spec.ServiceAccountName = "watcher"
	})
	t.Cleanup(func() { // the running controller removes it
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":null}}`))
		_ = r.admin.Patch(context.WithoutCancel(t.Context()), &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}, patch)
	})
	d := r.drive(t, key, nil)
	d.watches = drift.Options{Limit: 8, Lifetime: 2 * time.Second, Refused: 100 * time.Millisecond}
	d = d.again(t, nil)
	d.ready(t)
	d.watched(t, 1, "")
	edit := func(value string) { r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"`+value+`"}}`) }
	edit("seen")
	d.putsBack(t, namespace)

	before := role.DeepCopy()
	role.Rules = role.Rules[:1]
	if err := r.admin.Patch(t.Context(), role, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	d.watched(t, 0, "configmaps in "+namespace+": service account "+namespace+"/watcher may not list and watch them")
	edit("unseen")
	for range 5 {
		d.reconcile(t)
	}
	if got := r.value(t, t.Context(), namespace, "a"); got != "unseen" {
		t.Errorf("the value is %q: the controller was told of an object that the ServiceAccount may not read", got)
	}
	d.now = d.now.Add(8760 * time.Hour)
	d.putsBack(t, namespace) // at the interval, as the status says

	edit("meanwhile")
	if err := r.admin.Patch(t.Context(), before.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(
		`{"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","create","patch","delete","list","watch"]}]}`))); err != nil {
		t.Fatal(err)
	}
	d.watched(t, 1, "")
	d.putsBack(t, namespace)
}

// watched reconciles until so many watches are open, and the status names what is not watched.
func (d *driver) watched(t *testing.T, open int, gap string) {
	t.Helper()
	d.r.eventually(t, t.Context(), "watched, but for: "+gap, func(context.Context) (bool, string) {
		d.reconcile(t)
		now := d.deployment(t)
		said := ""
		if now.Status.Drift != nil {
			said = strings.Join(now.Status.Drift.AtInterval, "\n")
		}
		return d.Watching().Open == open && said == gap, said + "\n" + describe(now)
	})
}

// putsBack reconciles until the object matches the bundle.
func (d *driver) putsBack(t *testing.T, namespace string) {
	t.Helper()
	d.r.eventually(t, t.Context(), "the object is put back", func(ctx context.Context) (bool, string) {
		d.reconcile(t)
		got := d.r.value(t, ctx, namespace, "a")
		return got == "one", got
	})
}
