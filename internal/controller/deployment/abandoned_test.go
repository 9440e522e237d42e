// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// abandonNow is the patch with the annotation that abandons a removal.
const abandonNow = `{"metadata":{"annotations":{"satchel.dev/abandon":"now"}}}`

// deleteAccount deletes the ServiceAccount of a namespace and its binding.
func (r *rig) deleteAccount(t *testing.T, namespace string) {
	t.Helper()
	r.delete(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "installer"}})
	r.delete(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-installer"}})
}

// installed is a deployment of the ConfigMaps a and b, installed by a driver.
func (r *rig) installed(t *testing.T, namespace string) *driver {
	t.Helper()
	r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	d := r.drive(t, r.deploy(t, namespace, "app", left), nil)
	t.Cleanup(func() { r.finalize(t, d.key) })
	d.ready(t)
	return d
}

// finalize removes the finalizer of a deployment that a driver did not remove.
func (r *rig) finalize(t *testing.T, key client.ObjectKey) {
	t.Helper()
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := r.admin.Patch(context.WithoutCancel(t.Context()), d, patch); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

// blocked reconciles, and returns the message of the condition RemovalBlocked.
func (d *driver) blocked(t *testing.T, reason string) string {
	t.Helper()
	d.reconcile(t)
	found := d.deployment(t)
	c := conditions.Get(found, v1alpha1.RemovalBlockedCondition)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason || c.LastTransitionTime.After(d.now) {
		t.Fatalf("RemovalBlocked is not True with the reason %s:\n%s", reason, describe(found))
	}
	if ready := conditions.Get(found, "Ready"); ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, c.Message) {
		t.Errorf("Ready does not say what is waited for:\n%s", describe(found))
	}
	return c.Message
}

// over reconciles, and tells whether the deployment is gone.
func (d *driver) over(t *testing.T) bool {
	t.Helper()
	d.reconcile(t)
	err := d.r.admin.Get(t.Context(), d.key, &v1alpha1.BundleDeployment{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return apierrors.IsNotFound(err)
}

// says fails unless an event contains each text.
func (d *driver) says(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !d.heard(text) {
			t.Errorf("no event says %q: %q", text, d.told.notes)
		}
	}
}

// F41: kubectl delete -f of one folder, Flux's prune and Argo CD's cascade delete the deployment with its ServiceAccount and
// the binding. The removal says what it lacks and until when it tries, and then ends. What stays is adopted by the same
// deployment when it is created again.
func TestF41DeletedWithItsServiceAccount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	d := r.installed(t, namespace)
	r.startRemoval(t, d.key)
	r.deleteAccount(t, namespace)
	message := d.blocked(t, v1alpha1.ReasonAccountNotFound)
	began := d.now
	t.Logf("RemovalBlocked: %s", message)
	t.Logf("Ready: %s", conditions.GetMessage(d.deployment(t), "Ready"))
	d.now = began.Add(9*time.Minute + 58*time.Second)
	if again := d.again(t, nil).blocked(t, v1alpha1.ReasonAccountNotFound); again != message { // after a restart, too
		t.Errorf("the message changes to %s", again)
	}
	d.now = began.Add(10 * time.Minute)
	if !d.over(t) {
		t.Fatalf("not abandoned:\n%s", describe(d.deployment(t)))
	}
	t.Logf("events: %q", d.told.notes)
	d.says(t, "Warning LeftBehind: the removal was abandoned after it had failed for 10m0s; 2 objects stay with their labels, as they could not be annotated as orphaned: ConfigMap "+
		namespace+"/a, ConfigMap "+namespace+"/b; it failed with: ")
	r.must(t, aConfigMap(namespace, "a"))
	if err := installation.Admin(t.Context(), r.admin, namespace, "installer"); err != nil {
		t.Fatal(err)
	}
	again := r.deploy(t, namespace, "app", quick)
	r.until(t, again, "installed again", func(d *v1alpha1.BundleDeployment) bool { return conditions.IsTrue(d, "Ready") })
	r.remove(t, again)
	r.gone(t, aConfigMap(namespace, "b"))
}

// F41: where bindings of the deleted ServiceAccount are left, they suffice: the removal completes as the ServiceAccount that applied
// the objects.
func TestF41BindingIsLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, published.Revision)
	mark := r.mark(t)
	r.delete(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "installer"}})
	began := time.Now()
	r.remove(t, key)
	t.Logf("gone after %s", time.Since(began).Round(10*time.Millisecond))
	r.gone(t, aConfigMap(namespace, "a"))
	writers := map[string]bool{}
	for _, e := range r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return e.User == controllerUser && e.Verb == "delete" && e.Resource == "configmaps" && e.Namespace == namespace
	}) {
		writers[e.ImpersonatedUser] = true
	}
	if len(writers) != 1 || !writers["system:serviceaccount:"+namespace+":installer"] {
		t.Errorf("deleted as %v", writers)
	}
}

// F41, T2: a change of the spec never leads to the permissions of a ServiceAccount that does not exist, such as one that was
// deleted while its binding was forgotten: only the recorded one is impersonated. A forged record is not believed.
func TestF41T2OnlyTheRecordedServiceAccount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, forge := range map[string]bool{"spec": false, "spec and record": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			d := r.installed(t, namespace)
			if err := installation.Admin(t.Context(), r.admin, namespace, "ghost"); err != nil {
				t.Fatal(err)
			}
			r.delete(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ghost"}})
			r.startRemoval(t, d.key)
			r.edit(t, d.key, func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "ghost" })
			if forge {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"internal":"{\"executed\":{\"serviceAccountName\":\"ghost\"}}"}}`))
				if err := r.admin.Status().Patch(t.Context(), d.deployment(t), patch); err != nil {
					t.Fatal(err)
				}
			}
			mark := r.mark(t)
			if message := d.blocked(t, v1alpha1.ReasonAccountNotFound); !strings.Contains(message, "serviceaccount "+namespace+"/ghost does not exist") {
				t.Errorf("it says: %s", message)
			}
			asGhost := r.audit(t, mark, func(e controlplane.AuditEvent) bool {
				return e.ImpersonatedUser == "system:serviceaccount:"+namespace+":ghost"
			})
			if len(asGhost) > 0 {
				t.Errorf("impersonated: %v", asGhost)
			}
			r.must(t, aConfigMap(namespace, "a"))
			r.edit(t, d.key, func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "installer" })
			if forge {
				return // installer exists, and its record does not matter
			}
			for range 20 {
				if d.over(t) {
					break
				}
			}
			r.gone(t, aConfigMap(namespace, "a"))
		})
	}
}

// F41: a ServiceAccount that exists and lacks permissions is waited for without a limit: only the annotation ends that. What can
// still be written is annotated as orphaned, and the rest is listed.
func TestF41PermissionsAreMissing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	d := r.installed(t, namespace)
	r.delete(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-installer"}})
	r.create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "some"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"a"}, Verbs: []string{"get", "patch"}},
	}})
	r.bindRole(t, namespace, "some")
	r.startRemoval(t, d.key)
	message := d.blocked(t, v1alpha1.ReasonRemovalFailed)
	t.Logf("RemovalBlocked: %s", message)
	if !strings.Contains(message, "without a time limit") || !strings.Contains(message, v1alpha1.AbandonAnnotation+"=now") {
		t.Errorf("it says: %s", message)
	}
	d.now = d.now.Add(1000 * time.Hour)
	d.blocked(t, v1alpha1.ReasonRemovalFailed)
	r.patch(t, object("satchel.dev/v1alpha1", "BundleDeployment", namespace, "app"), abandonNow)
	if !d.over(t) {
		t.Fatalf("not abandoned:\n%s", describe(d.deployment(t)))
	}
	t.Logf("events: %q", d.told.notes)
	d.says(t, "LeftBehind: the removal was abandoned as the annotation satchel.dev/abandon demands; 1 object stays with its labels, as it could not be annotated as orphaned: ConfigMap "+
		namespace+"/b; 1 object stays, annotated satchel.dev/orphaned: ConfigMap "+namespace+"/a; it failed with: ")
	a, b := r.must(t, aConfigMap(namespace, "a")), r.must(t, aConfigMap(namespace, "b"))
	if a.GetAnnotations()[orphaned] != namespace+"/app" || a.GetLabels()[v1alpha1.DeploymentLabel] != "" {
		t.Errorf("a is not orphaned: %v %v", a.GetAnnotations(), a.GetLabels())
	}
	if b.GetAnnotations()[orphaned] != "" || b.GetLabels()[v1alpha1.DeploymentLabel] != "app" {
		t.Errorf("b was written: %v %v", b.GetAnnotations(), b.GetLabels())
	}
}

func (r *rig) bindRole(t *testing.T, namespace, role string) {
	t.Helper()
	r.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "installer"}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	})
}

// hold keeps an object of a namespace that is being deleted until the test ends.
func (r *rig) hold(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	r.patch(t, o, `{"metadata":{"finalizers":["example.org/hold"]}}`)
	t.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		_ = r.admin.Patch(context.WithoutCancel(t.Context()), o, patch)
	})
}

// F41: while its namespace is being deleted, a deployment to another cluster does not wait for ever for its kubeconfig, which is
// gone, or for a cluster that does not answer. Events are about the namespace, since it accepts none.
func TestF41NamespaceGoesAndTheClusterIsOutOfReach(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, tc := range map[string]struct {
		hinder func(t *testing.T, a *abroad)
		reason string
		limit  time.Duration
	}{
		"kubeconfig gone": {func(t *testing.T, a *abroad) {
			t.Helper()
			a.delete(t, object("v1", "Secret", a.namespace, "prod"))
		}, v1alpha1.ReasonKubeConfigNotFound, time.Minute},
		"cluster unreachable": {func(t *testing.T, a *abroad) {
			t.Helper()
			closed, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			_ = closed.Close()
			a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", func(cluster, _ map[string]any) { cluster["server"] = "https://" + closed.Addr().String() })})
			r.hold(t, object("v1", "Secret", a.namespace, "prod"))
		}, v1alpha1.ReasonClusterUnreachable, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := r.newAbroad(t)
			a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", nil)})
			r.publish(t, a.namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
			d := r.drive(t, r.deploy(t, a.namespace, "app", both(a.goes, left)), nil)
			t.Cleanup(func() { r.finalize(t, d.key) })
			d.Change(func(deps *deployment.Deps) { deps.Remotes, deps.OwnCluster = remotes(t), true })
			d.ready(t)
			tc.hinder(t, a)
			r.startRemoval(t, d.key)
			if message := d.blocked(t, tc.reason); !strings.Contains(message, "without a time limit") {
				t.Errorf("limited although the namespace stays: %s", message)
			}
			for _, kind := range []string{"Role", "RoleBinding"} {
				r.hold(t, object("rbac.authorization.k8s.io/v1", kind, a.namespace, "installer"))
			}
			r.hold(t, object("v1", "ServiceAccount", a.namespace, "installer"))
			namespace := object("v1", "Namespace", "", a.namespace)
			r.delete(t, namespace)
			r.eventually(t, t.Context(), "the namespace is being deleted", func(context.Context) (bool, string) {
				return r.must(t, namespace).GetDeletionTimestamp() != nil, ""
			})
			message := d.blocked(t, tc.reason)
			t.Logf("RemovalBlocked: %s", message)
			if !strings.Contains(message, "abandoned at ") {
				t.Errorf("not limited: %s", message)
			}
			d.now = namespace.GetDeletionTimestamp().Add(tc.limit - 5*time.Second)
			if d.now.After(time.Now()) {
				d.blocked(t, tc.reason)
			}
			d.now = namespace.GetDeletionTimestamp().Add(tc.limit + 5*time.Second)
			if !d.over(t) {
				t.Fatalf("not abandoned:\n%s", describe(d.deployment(t)))
			}
			d.says(t, "LeftBehind: the removal of bundledeployment "+a.namespace+"/app was abandoned after it had failed for ", "1 object stays with its labels", "ConfigMap "+a.there+"/a")
			t.Logf("events: %q", d.told.notes)
			r.must(t, aConfigMap(a.there, "a"))
		})
	}
}

// F41: with deletionPolicy Orphan a removal ends, whatever is gone besides.
func TestF41OrphanWithNothingLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.newAbroad(t)
	a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", nil)})
	published := r.publish(t, a.namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	orphans := func(d *v1alpha1.BundleDeployment) { d.Spec.DeletionPolicy = v1alpha1.DeletionOrphan }
	key := r.deploy(t, a.namespace, "app", both(a.goes, orphans))
	r.ready(t, key, published.Revision)
	never := r.deploy(t, a.namespace, "never", both(quick, orphans, func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "missing" }))
	r.unready(t, never, v1alpha1.ReasonAccountNotFound)
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true }) // or its objects would be put back
	r.until(t, key, "suspended", func(*v1alpha1.BundleDeployment) bool { return true })
	r.delete(t, aConfigMap(a.there, "a"))
	r.delete(t, object("v1", "Secret", a.namespace, "prod"))
	r.delete(t, object("rbac.authorization.k8s.io/v1", "RoleBinding", a.namespace, "installer"))
	r.delete(t, object("v1", "ServiceAccount", a.namespace, "installer"))
	r.remove(t, key)
	r.remove(t, never)
}

// F41: with deletionPolicy Orphan a removal also ends where objects are of a kind that is unavailable for good, as that of an
// aggregated API without a server.
func TestF41OrphanOfAKindThatIsUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	definitions := r.publish(t, namespace, "definitions", "v1", fstest.MapFS{"a.yaml": crd(group)})
	r.ready(t, r.deploy(t, namespace, "definitions", nil), definitions.Revision)
	r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": gadget(group, "one")})
	d := r.drive(t, r.deploy(t, namespace, "app", both(left, func(d *v1alpha1.BundleDeployment) { d.Spec.DeletionPolicy = v1alpha1.DeletionOrphan })), nil)
	t.Cleanup(func() { r.finalize(t, d.key) })
	d.ready(t)
	r.edit(t, client.ObjectKey{Namespace: namespace, Name: "definitions"}, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
	r.delete(t, crdObject(group))
	r.gone(t, crdObject(group))
	dead := object("apiregistration.k8s.io/v1", "APIService", "", "v1."+group)
	dead.Object["spec"] = map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1), "insecureSkipTLSVerify": true,
		"service": map[string]any{"namespace": namespace, "name": "gone"},
	}
	r.gone(t, object("apiregistration.k8s.io/v1", "APIService", "", "v1."+group))
	r.create(t, dead)
	r.startRemoval(t, d.key)
	for range 30 {
		if d.over(t) {
			t.Logf("events: %q", d.told.notes)
			d.says(t, "LeftBehind: the removal was abandoned as spec.deletionPolicy is Orphan; 1 object stays with its labels")
			return
		}
	}
	t.Fatalf("not abandoned:\n%s", describe(d.deployment(t)))
}
