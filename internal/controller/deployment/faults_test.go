// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

func TestF5HalfAppliedObjectsArePruned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	service := func() *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "refused"}}
		s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		return s
	}
	r.refuse(t, namespace, policy{operation: admissionv1.Create, resource: "services", rule: "object.metadata.name != 'refused'", message: "'not this one'"},
		func(ctx context.Context) error { return r.admin.Create(ctx, service(), client.DryRunAll) })

	files := fstest.MapFS{"z.yaml": file("apiVersion: v1\nkind: Service\nmetadata: {name: refused}\nspec: {ports: [{port: 80}]}")}
	for _, name := range []string{"a1", "a2", "a3", "a4"} {
		files[name+".yaml"] = configMap(name, "one")
	}
	r.publish(t, namespace, "app", "v1", files)
	key := r.deploy(t, namespace, "app", quick)
	d := r.unready(t, key, v1alpha1.ReasonApplyFailed)
	if message := conditions.GetMessage(d, v1alpha1.AppliedCondition); !strings.Contains(message, "Service "+namespace+"/refused") || !strings.Contains(message, "not this one") {
		t.Errorf("the message does not name the object and the reason: %s", message)
	}
	if d.Status.Inventory.Count != 5 || r.value(t, t.Context(), namespace, "a1") != "one" {
		t.Fatalf("%d objects in the inventory, want 5 of which 4 exist", d.Status.Inventory.Count)
	}
	r.unready(t, key, v1alpha1.ReasonDryRunFailed) // from the second attempt on it is a dry run that tells
	seen := r.record(t, key)
	r.looks(t, namespace, "installer", 3)
	if versions := seen(); len(versions) > 1 {
		t.Errorf("the status was written %d times while each retry fails alike:\n%s", len(versions)-1, describe(versions[1]))
	}
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"b.yaml": configMap("b", "two")})
	r.ready(t, key, second.Revision)
	for _, name := range []string{"a1", "a2", "a3", "a4"} {
		r.gone(t, aConfigMap(namespace, name))
	}
	r.until(t, key, "one object in the inventory", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Inventory.Count == 1 })
}

func TestF4InventoryIsStoredBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mark := r.mark(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	seen := r.record(t, client.ObjectKey{Namespace: namespace, Name: "app"})
	r.ready(t, r.deploy(t, namespace, "app", nil), published.Revision)
	ahead := false
	for _, d := range seen() {
		ahead = ahead || d.Status.Applied.Revision == "" && d.Status.Inventory != nil && d.Status.Inventory.Count == 2
	}
	if !ahead {
		t.Error("no version of the status lists the objects before they are applied")
	}
	stored := false
	for _, e := range r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return e.Namespace == namespace && e.User == controllerUser && isWrite(e)
	}) {
		stored = stored || e.Resource == "bundledeployments" && e.Subresource == "status"
		if e.ImpersonatedUser != "" && !stored {
			t.Errorf("written before anything was stored: %s", e)
		}
	}
}

func TestF6PruneDeniedAndAllowedLater(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	files := fstest.MapFS{"keep.yaml": configMap("keep", "one")}
	for _, name := range []string{"p", "q", "r"} {
		files[name+".yaml"] = configMap(name, "one")
	}
	first := r.publish(t, namespace, "app", "v1", files)
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	lift := r.refuse(t, namespace, policy{operation: admissionv1.Delete, resource: "configmaps", rule: "false", message: "'nothing is deleted here'"},
		func(ctx context.Context) error {
			return r.admin.Delete(ctx, aConfigMap(namespace, "p"), client.DryRunAll)
		})

	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"keep.yaml": configMap("keep", "two")})
	d := r.unready(t, key, v1alpha1.ReasonPruneFailed)
	message := conditions.GetMessage(d, "Ready")
	for _, name := range []string{"p", "q", "r"} {
		if !strings.Contains(message, "ConfigMap "+namespace+"/"+name+":") {
			t.Errorf("%s is not named: %s", name, message)
		}
	}
	if strings.Contains(message, "stays applied") || d.Status.Inventory.Count != 4 {
		t.Errorf("%d objects in the inventory, want 4; message: %s", d.Status.Inventory.Count, message)
	}
	if got := r.value(t, t.Context(), namespace, "keep"); got != "two" {
		t.Errorf("the kept object has %q, want the new value", got)
	}
	lift()
	r.ready(t, key, second.Revision)
	for _, name := range []string{"p", "q", "r"} {
		r.gone(t, aConfigMap(namespace, name))
	}
}

func TestPruneWaitsForAForeignFinalizer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("held", "one"), "b.yaml": configMap("b", "one")})
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
		d.Spec.RetryInterval = v1alpha1.Duration{Duration: time.Second} // the interval is ten minutes
	})
	r.ready(t, key, first.Revision)
	r.patch(t, aConfigMap(namespace, "held"), `{"metadata":{"finalizers":["example.org/hold"]}}`)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"b.yaml": configMap("b", "two")})
	d := r.ready(t, key, second.Revision)
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "held") || !strings.Contains(message, "example.org/hold") {
		t.Errorf("the message does not say for what it waits: %s", message)
	}
	r.told(t, namespace, "Pruned: deleted 1 object that left the bundle: ConfigMap "+namespace+"/held")
	mark := r.mark(t)
	time.Sleep(3 * time.Second) // a rate takes time
	looks := r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		return e.Namespace == namespace && e.Resource == "serviceaccounts"
	})
	if len(looks) > 6 {
		t.Errorf("%d reconciles in three seconds while nothing changes", len(looks))
	}
	r.patch(t, aConfigMap(namespace, "held"), `{"metadata":{"finalizers":null}}`)
	r.until(t, key, "one object in the inventory", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Inventory.Count == 1 && !strings.Contains(conditions.GetMessage(d, "Ready"), "held")
	})
}

func TestF20DefinitionAndResourceInOneBundle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": gadget(group, "one"), "b.yaml": crd(group)})
	key := r.deploy(t, namespace, "app", nil)
	r.ready(t, key, published.Revision)
	r.must(t, object(group+"/v1", "Gadget", namespace, "one"))
	// A kind that appeared a moment ago is found by others, too.
	other := r.publish(t, namespace, "other", "v1", fstest.MapFS{"a.yaml": gadget(group, "two")})
	r.ready(t, r.deploy(t, namespace, "other", quick), other.Revision)
}

// rival creates a CRD with the names of the kind Gadget, so that no other CRD of the group with these names is established.
func (r *rig) rival(t *testing.T, group string) *unstructured.Unstructured {
	t.Helper()
	rival := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "rivals."+group)
	rival.Object["spec"] = map[string]any{
		"group": group, "scope": "Namespaced",
		"names": map[string]any{"kind": "Gadget", "listKind": "GadgetList", "plural": "rivals", "singular": "rival"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
	}
	r.create(t, rival)
	return rival
}

// TestF20TimeoutDespiteSlowConversions: conversions take longer than a reconcile waits for them.
func TestF20TimeoutDespiteSlowConversions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	r.rival(t, group)
	r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": gadget(group, "one"), "b.yaml": crd(group)})
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) {
		d.Labels = map[string]string{driven: ""}
		d.Spec.Health.Timeout = v1alpha1.Duration{Duration: time.Second}
	}))
	t.Cleanup(func() { r.undrive(t, key) })
	d := r.drive(t, key, nil)
	d.DoNotWaitForConversions()
	r.eventually(t, t.Context(), "the apply fails", func(ctx context.Context) (bool, string) {
		d.now = d.now.Add(time.Second)
		_, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: key})
		var found v1alpha1.BundleDeployment
		if err := errors.Join(err, r.admin.Get(ctx, key, &found)); err != nil {
			return false, err.Error()
		}
		return conditions.IsFalse(&found, v1alpha1.AppliedCondition), describe(&found)
	})
}

func TestF20DefinitionThatIsNeverEstablished(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	rival := r.rival(t, group)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": gadget(group, "one"), "b.yaml": crd(group)})
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Health.Timeout = v1alpha1.Duration{Duration: 2 * time.Second}
	}))
	d := r.unready(t, key, v1alpha1.ReasonApplyFailed)
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "gadgets."+group+" is not established") || !strings.Contains(message, "already in use") {
		t.Errorf("the message does not say what is wrong: %s", message)
	}
	if !conditions.IsFalse(d, v1alpha1.AppliedCondition) {
		t.Errorf("Applied is not False:\n%s", describe(d))
	}
	r.delete(t, rival)
	r.gone(t, rival)
	repaired := time.Now()
	r.ready(t, key, published.Revision)
	if took := time.Since(repaired); took > 30*time.Second {
		t.Errorf("took %s after the repair, want about 5 s", took)
	}
}

func TestF22RemovalWaitsForAForeignFinalizer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("held", "one"), "b.yaml": configMap("free", "one")})
	key := r.deploy(t, namespace, "app", nil)
	r.ready(t, key, published.Revision)
	r.patch(t, aConfigMap(namespace, "held"), `{"metadata":{"finalizers":["example.org/hold"]}}`)
	r.startRemoval(t, key)
	r.until(t, key, "the message names the finalizer", func(d *v1alpha1.BundleDeployment) bool {
		message := conditions.GetMessage(d, "Ready")
		return strings.Contains(message, "ConfigMap "+namespace+"/held") && strings.Contains(message, "example.org/hold") && d.Status.Inventory.Count == 1
	})
	r.gone(t, aConfigMap(namespace, "free"))
	r.patch(t, aConfigMap(namespace, "held"), `{"metadata":{"finalizers":null}}`)
	r.remove(t, key)
}

func TestF22AccountDeletedBeforeRemoval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, published.Revision)
	r.deleteAccount(t, namespace)
	r.startRemoval(t, key)
	d := r.until(t, key, "the removal fails", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.GetReason(d, "Ready") == v1alpha1.ReasonAccountNotFound && !d.DeletionTimestamp.IsZero() &&
			strings.HasPrefix(conditions.GetMessage(d, "Ready"), "removing 1 object: ")
	})
	r.looks(t, namespace, "installer", 7) // more tries than in a namespace that is going
	if len(r.until(t, key, "still there", func(*v1alpha1.BundleDeployment) bool { return true }).Finalizers) == 0 {
		t.Errorf("the finalizer is gone:\n%s", describe(d))
	}
	r.must(t, aConfigMap(namespace, "a"))
	if err := installation.Admin(t.Context(), r.admin, namespace, "installer"); err != nil {
		t.Fatal(err)
	}
	r.remove(t, key)
	r.gone(t, aConfigMap(namespace, "a"))
}

func TestF22WholeNamespaceDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace, elsewhere := r.namespace(t), r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("near", "one"), "b.yaml": file(
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far, namespace: " + elsewhere + "}\ndata: {value: one}")})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, published.Revision)
	// The permissions go first, as may happen when the namespace is deleted.
	r.deleteAccount(t, namespace)
	r.delete(t, object("v1", "Namespace", "", namespace))
	r.until(t, key, "the removal says when it is abandoned", func(d *v1alpha1.BundleDeployment) bool {
		return strings.Contains(conditions.GetMessage(d, v1alpha1.RemovalBlockedCondition), "Nothing can be created in namespace "+namespace)
	})
	r.patch(t, object("satchel.dev/v1alpha1", "BundleDeployment", namespace, "app"), `{"metadata":{"annotations":{"satchel.dev/abandon":"now"}}}`)
	r.eventually(t, t.Context(), "the deployment lets its namespace go", func(ctx context.Context) (bool, string) {
		var d v1alpha1.BundleDeployment
		err := r.admin.Get(ctx, key, &d)
		return apierrors.IsNotFound(err), describe(&d)
	})
	if got := r.value(t, t.Context(), elsewhere, "far"); got != "one" {
		t.Errorf("the object elsewhere has %q", got)
	}
	r.eventually(t, t.Context(), "an event names what is left", func(context.Context) (bool, string) {
		all := strings.Join(r.events(t, "default", namespace), "\n")
		_, listed, told := strings.Cut(all, "LeftBehind: ")
		listed, _, _ = strings.Cut(listed, "it failed with")
		return told && strings.Contains(listed, "ConfigMap "+elsewhere+"/far") && !strings.Contains(listed, "near"), all
	})
}

func TestF22DefinitionGoneBeforeRemoval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": gadget(group, "one"), "b.yaml": crd(group), "c.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", nil)
	r.ready(t, key, published.Revision)
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true }) // or the CRD is back before it was seen gone
	r.until(t, key, "suspended", func(*v1alpha1.BundleDeployment) bool { return true })
	r.delete(t, crdObject(group))
	r.gone(t, crdObject(group))
	r.remove(t, key)
	r.gone(t, aConfigMap(namespace, "a"))
}
