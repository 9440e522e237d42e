// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/runtime/conditions"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// bringing is the manifest of a deployment with the given source.
func bringing(name, source, account string) *fstest.MapFile {
	return file("apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: " + name + "}\nspec:\n" +
		"  sourceRef: {kind: BundleSource, name: " + source + "}\n  serviceAccountName: " + account + "\n" +
		"  interval: 1s\n  retryInterval: 1s\n  apply: {collisionProtection: None}\n")
}

// aDeployment is a bare BundleDeployment, to be read.
func aDeployment(namespace, name string) *unstructured.Unstructured {
	return object("satchel.dev/v1alpha1", "BundleDeployment", namespace, name)
}

// A bundle that contains its own deployment is refused, whatever the collision protection, and is
// removed like any other.
func TestT19BundleOfItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, protection := range []v1alpha1.CollisionProtection{v1alpha1.CollisionPrevent, v1alpha1.CollisionNone} {
		t.Run(string(protection), func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "self.yaml": bringing("app", "other", "missing")})
			key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) { d.Spec.Apply.CollisionProtection = protection }))
			d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
			want := "BundleDeployment.satchel.dev " + namespace + "/app is this deployment itself: take it out of the bundle"
			if message := conditions.GetMessage(d, v1alpha1.PlannedCondition); message != want {
				t.Errorf("the message is %q, want %q", message, want)
			}
			if d.Spec.ServiceAccountName != "installer" || r.get(t, aConfigMap(namespace, "a")) || d.Status.Inventory.Count > 0 {
				t.Errorf("part of the bundle was written:\n%s", describe(d))
			}
			r.remove(t, key)
		})
	}
}

// Two deployments that contain each other: the second one may not adopt the first one, or their
// removals would wait for each other. Both are removed when the first one is deleted.
func TestT19BundleOfWhatBroughtIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.publish(t, namespace, "inner", "v1", fstest.MapFS{"a.yaml": bringing("outer", "inner", "installer"), "b.yaml": configMap("a", "one")})
	r.publish(t, namespace, "outer", "v1", fstest.MapFS{"a.yaml": bringing("inner", "inner", "installer")})
	outer := r.deploy(t, namespace, "outer", quick)
	inner := client.ObjectKey{Namespace: namespace, Name: "inner"}
	r.eventually(t, t.Context(), "the inner one exists", func(context.Context) (bool, string) {
		return r.get(t, aDeployment(namespace, "inner")), ""
	})
	d := r.unready(t, inner, v1alpha1.ReasonPlanRefused)
	want := "BundleDeployment.satchel.dev " + namespace + "/outer is the deployment " + namespace + "/outer, which installed this one"
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, want) {
		t.Errorf("the message is %q", message)
	}
	if found := r.until(t, outer, "the outer one", func(*v1alpha1.BundleDeployment) bool { return true }); effective.SourceName(found) != "outer" {
		t.Errorf("the outer deployment was changed: %+v", found.Spec)
	}
	r.remove(t, outer)
	r.gone(t, aDeployment(namespace, "inner"))
}

// Nested deployments are limited in depth, and are removed in order: the one that installed a
// ServiceAccount after the deployment that uses it.
func TestT19NestedDeployments(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	const levels = 10 // 0 is created, 8 is the last one that may bring another
	for i := range levels {
		name := fmt.Sprint("level-", i)
		r.publish(t, namespace, name, "v1", fstest.MapFS{
			"a.yaml": configMap(name, "one"), "b.yaml": bringing(fmt.Sprint("level-", i+1), fmt.Sprint("level-", i+1), name), "c.yaml": account(namespace, name),
		})
	}
	top := r.deploy(t, namespace, "level-0", quick)
	r.eventually(t, t.Context(), "the last level exists", func(context.Context) (bool, string) {
		return r.get(t, aDeployment(namespace, "level-8")), ""
	})
	d := r.unready(t, client.ObjectKey{Namespace: namespace, Name: "level-8"}, v1alpha1.ReasonPlanRefused)
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "level-9 would be one more deployment that another one brings, and 9 are above it already") {
		t.Errorf("the message does not say that it is too deep: %s", message)
	}
	if r.get(t, aConfigMap(namespace, "level-8")) || r.get(t, aDeployment(namespace, "level-9")) {
		t.Error("part of the bundle was written")
	}
	r.remove(t, top)
	for i := range levels {
		r.gone(t, aDeployment(namespace, fmt.Sprint("level-", i)))
		r.gone(t, aConfigMap(namespace, fmt.Sprint("level-", i)))
	}
}

// account is the manifest of a ServiceAccount with all permissions in its namespace.
func account(namespace, name string) *fstest.MapFile {
	return file("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + name + "}\n---\n" +
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + namespace + "-" + name + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
		"subjects: [{kind: ServiceAccount, name: " + name + ", namespace: " + namespace + "}]\n")
}

// A bundle grants no ServiceAccount: installing a deployment that uses a stronger ServiceAccount of
// the namespace needs the permission to create deployments there, which includes the use of that
// ServiceAccount.
func TestT19StrongerServiceAccountOfTheNamespace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t) // "installer" may do everything
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "narrow"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
	}}
	r.create(t, role)
	r.bind(t, namespace, "narrow", "narrow")
	stronger := r.publish(t, namespace, "stronger", "v1", fstest.MapFS{"a.yaml": file("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}")})
	r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": bringing("stronger", "stronger", "installer"), "b.yaml": configMap("a", "one")})
	mark := r.mark(t)
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "narrow" }))
	d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "create, delete, get, patch bundledeployments.satchel.dev (stronger)") {
		t.Errorf("the message does not name the permission: %s", message)
	}
	if written := r.writes(t, namespace, mark); len(written) > 0 || r.get(t, aDeployment(namespace, "stronger")) {
		t.Errorf("part of the bundle was written: %v", written)
	}
	r.patch(t, object("rbac.authorization.k8s.io/v1", "Role", namespace, "narrow"),
		`{"rules":[{"apiGroups":["","satchel.dev"],"resources":["configmaps","bundledeployments"],"verbs":["*"]}]}`)
	r.ready(t, client.ObjectKey{Namespace: namespace, Name: "stronger"}, stronger.Revision)
	for _, e := range r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return e.Namespace == namespace && e.Resource == "services" && isWrite(e)
	}) {
		if e.ImpersonatedUser != "system:serviceaccount:"+namespace+":installer" {
			t.Errorf("another user wrote for the inner deployment: %s", e)
		}
	}
	r.remove(t, key)
	r.gone(t, aDeployment(namespace, "stronger"))
	r.gone(t, object("v1", "Service", namespace, "s"))
}

// The controller's own Deployment and lease are not special: a tenant's ServiceAccount
// cannot change them, and one with all permissions does not adopt them.
func TestT19TheControllersOwnObjects(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const name = "bundle-deployment-controller"
	lease := object("coordination.k8s.io/v1", "Lease", installation.Namespace, name)
	lease.Object["spec"] = map[string]any{"holderIdentity": "the one that leads"}
	r.create(t, lease)
	bundle := fstest.MapFS{
		"lease.yaml": file("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: " + name + ", namespace: " + installation.Namespace + "}\nspec: {holderIdentity: me}"),
		"own.yaml":   configMap("own", "one"),
	}
	tenants := controlplane.NewNamespace(t, r.cp)
	if err := installation.Account(t.Context(), r.admin, tenants, "installer", "edit", tenants); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ namespace, says string }{
		"tenant": {tenants, `in namespace "satchel-system": create, delete, get, patch leases.coordination.k8s.io (bundle-deployment-controller)`},
		"admin":  {r.namespace(t), "Lease.coordination.k8s.io satchel-system/bundle-deployment-controller exists already"},
	} {
		r.publish(t, c.namespace, "app", "v1", bundle)
		key := r.deploy(t, c.namespace, "app", quick)
		d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
		if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, c.says) {
			t.Errorf("%s: the message is %s", name, message)
		}
		if r.get(t, aConfigMap(c.namespace, "own")) {
			t.Errorf("%s: part of the bundle was written", name)
		}
	}
	if holder, _, _ := unstructured.NestedString(r.must(t, lease).Object, "spec", "holderIdentity"); holder != "the one that leads" {
		t.Errorf("the lease is held by %q", holder)
	}
}
