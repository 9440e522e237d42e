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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const orphaned = "satchel.dev/orphaned"

func TestRemovalKeepsDefinitionsAndTakesResourcesFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	bundle := fstest.MapFS{"a.yaml": crd(group), "b.yaml": gadget(group, "own"), "c.yaml": workload("operator", "example.org/operator:1")}
	published := r.publish(t, namespace, "app", "v1", bundle)
	key := r.deploy(t, namespace, "app", nil)
	r.ready(t, key, published.Revision)
	users := object(group+"/v1", "Gadget", namespace, "of-a-user")
	r.create(t, users)
	own := object(group+"/v1", "Gadget", namespace, "own")
	r.patch(t, own, `{"metadata":{"finalizers":["example.org/operator"]}}`)
	r.startRemoval(t, key)
	r.until(t, key, "the removal waits for the custom resource", func(d *v1alpha1.BundleDeployment) bool {
		message := conditions.GetMessage(d, "Ready")
		return strings.Contains(message, "Gadget."+group+" "+namespace+"/own") && strings.Contains(message, "example.org/operator")
	})
	operator := object("apps/v1", "Deployment", namespace, "operator")
	if r.must(t, operator).GetDeletionTimestamp() != nil {
		t.Error("the operator goes before its custom resource is finished")
	}
	r.patch(t, own, `{"metadata":{"finalizers":null}}`)
	r.remove(t, key)
	r.gone(t, operator)
	definition := r.must(t, crdObject(group))
	if definition.GetAnnotations()[orphaned] != namespace+"/app" || definition.GetLabels()[v1alpha1.DeploymentLabel] != "" {
		t.Errorf("the CRD is not annotated as orphaned: %v %v", definition.GetAnnotations(), definition.GetLabels())
	}
	r.must(t, users)
	r.told(t, namespace, "Kept: CustomResourceDefinition.apiextensions.k8s.io gadgets."+group+" is kept, marked "+orphaned)

	// Installing it again, under another name, adopts the CRD.
	again := r.publish(t, namespace, "again", "v1", bundle)
	r.ready(t, r.deploy(t, namespace, "again", quick), again.Revision)
	definition = r.must(t, crdObject(group))
	if _, still := definition.GetAnnotations()[orphaned]; still || definition.GetLabels()[v1alpha1.DeploymentLabel] != "again" {
		t.Errorf("the CRD was not adopted: %v %v", definition.GetAnnotations(), definition.GetLabels())
	}
}

func TestNamespaceThatDoesNotExist(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	elsewhere := namespace + "-target"
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) { d.Spec.Target.Namespace = elsewhere }))
	d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, `namespace "`+elsewhere+`" does not exist`) || !strings.Contains(message, "spec.target.createNamespace") {
		t.Errorf("the message does not name the namespace and the way: %s", message)
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Target.CreateNamespace = true })
	r.ready(t, key, published.Revision)
	r.holds(t, elsewhere, "a", "one")
	r.remove(t, key)
	r.gone(t, aConfigMap(elsewhere, "a"))
	target := r.must(t, object("v1", "Namespace", "", elsewhere))
	if target.GetDeletionTimestamp() != nil || len(target.GetLabels()[v1alpha1.DeploymentLabel]) > 0 {
		t.Error("the namespace that was created goes, or has the labels of an owner")
	}
	r.delete(t, target)
}

func TestKindThatIsMissing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": gadget(group, "one"), "b.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", quick)
	d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "does not know kind Gadget of "+group+"/v1") || !strings.Contains(message, "install the CRD") || !strings.Contains(message, "spec.apply.optionalKinds") {
		t.Errorf("the message does not name the kind and the remedy: %s", message)
	}
	if r.get(t, aConfigMap(namespace, "a")) {
		t.Error("part of the bundle was applied")
	}
	definitions := r.publish(t, namespace, "definitions", "v1", fstest.MapFS{"a.yaml": crd(group)})
	r.ready(t, r.deploy(t, namespace, "definitions", nil), definitions.Revision)
	r.ready(t, key, published.Revision)
}

func TestEmptyBundlePrunesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, empty := range map[string]fstest.MapFS{
		"no manifest":     {"README": file("nothing here")},
		"empty documents": {"a.yaml": file("# nothing\n---\n")},
		"empty list":      {"a.yaml": file("apiVersion: v1\nkind: List\nitems: []\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
			key := r.deploy(t, namespace, "app", quick)
			r.ready(t, key, first.Revision)
			r.publish(t, namespace, "app", "v2", empty)
			d := r.until(t, key, "not Ready", func(d *v1alpha1.BundleDeployment) bool { return conditions.IsFalse(d, "Ready") })
			t.Logf("%s: %s", conditions.GetReason(d, "Ready"), conditions.GetMessage(d, "Ready"))
			if d.Status.Inventory.Count != 1 || r.value(t, t.Context(), namespace, "a") != "one" {
				t.Errorf("something was pruned:\n%s", describe(d))
			}
		})
	}
}

func TestPruneDisabled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) { d.Spec.Prune.Enabled = new(false) }))
	r.ready(t, key, first.Revision)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.ready(t, key, second.Revision)
	r.until(t, key, "one object in the inventory", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Inventory.Count == 1 })
	r.remove(t, key)
	r.gone(t, aConfigMap(namespace, "a"))
	if got := r.value(t, t.Context(), namespace, "b"); got != "one" {
		t.Errorf("the object that left the bundle has %q, want it kept", got)
	}
	kept := aConfigMap(namespace, "b")
	if err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Fatal(err)
	}
	if kept.GetAnnotations()[v1alpha1.OrphanedAnnotation] == "" || kept.GetLabels()[v1alpha1.DeploymentLabel] != "" {
		t.Errorf("annotations %v, labels %v: the object is not annotated as orphaned", kept.GetAnnotations(), kept.GetLabels())
	}
}

// If nothing is ever deleted, the permission to delete is neither required nor used: neither
// when an object leaves the bundle, nor when the deployment is deleted.
func TestNothingIsDeletedWithoutPermission(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keeper"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch"}},
	}})
	r.bind(t, namespace, "keeper", "keeper")
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) {
		d.Spec.ServiceAccountName, d.Spec.Prune.Enabled, d.Spec.DeletionPolicy = "keeper", new(false), v1alpha1.DeletionOrphan
		d.Spec.Apply.Recreate = v1alpha1.RecreateOnImmutableChange
	}))
	if d := r.unready(t, key, v1alpha1.ReasonPlanRefused); !strings.Contains(conditions.GetMessage(d, "Ready"), "delete configmaps (a, b)") {
		t.Errorf("what recreating takes is not asked for:\n%s", describe(d))
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Apply.Recreate = v1alpha1.RecreateNone })
	r.ready(t, key, first.Revision)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.ready(t, key, second.Revision)
	r.until(t, key, "one object in the inventory", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Inventory.Count == 1 })
	r.remove(t, key)
	for _, name := range []string{"a", "b"} {
		if kept := r.must(t, aConfigMap(namespace, name)); kept.GetAnnotations()[orphaned] == "" || kept.GetLabels()[v1alpha1.DeploymentLabel] != "" {
			t.Errorf("%s is not annotated as orphaned: %v %v", name, kept.GetAnnotations(), kept.GetLabels())
		}
	}
}

func TestSuspendResumeAndDeletionWhileSuspended(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	suspend := func(key client.ObjectKey, value bool) {
		r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = value })
		r.until(t, key, "observed", func(*v1alpha1.BundleDeployment) bool { return true })
	}
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true }))
	r.unready(t, key, v1alpha1.ReasonSuspended)
	suspend(key, false)
	r.ready(t, key, first.Revision)
	suspend(key, true)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.delete(t, aConfigMap(namespace, "a"))
	r.handled(t, key)
	if got := r.value(t, t.Context(), namespace, "a"); got != "" {
		t.Errorf("a suspended deployment was repaired: %q", got)
	}
	suspend(key, false)
	r.ready(t, key, second.Revision)
	suspend(key, true)
	r.remove(t, key)
	r.gone(t, aConfigMap(namespace, "a"))
}

func TestRemovalOfWhatWasNeverInstalled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	mine := aConfigMap(namespace, "a")
	r.create(t, mine)
	r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "missing" })
	r.unready(t, key, v1alpha1.ReasonAccountNotFound)
	r.remove(t, key) // although the ServiceAccount does not exist
	if err := r.admin.Get(context.Background(), client.ObjectKeyFromObject(mine), mine); err != nil {
		t.Errorf("a foreign object is gone: %v", err)
	}
}
