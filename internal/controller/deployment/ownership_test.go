// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// many is a bundle of ConfigMaps.
func many(prefix string, count int) fstest.MapFS {
	files := fstest.MapFS{}
	for i := range count {
		name := fmt.Sprintf("%s%02d", prefix, i)
		files[name+".yaml"] = configMap(name, "one")
	}
	return files
}

// isHeld tells that a prune of the newest spec is held.
func isHeld(d *v1alpha1.BundleDeployment) bool {
	return conditions.IsTrue(d, v1alpha1.ApprovalPendingCondition) && conditions.GetReason(d, v1alpha1.ApprovalPendingCondition) == v1alpha1.ReasonPruneHeld
}

// An upgrade that deletes too much is applied and ready, and deletes nothing until the
// limit is raised. It says so, once.
func TestPruneHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", many("c", 12))
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	second := r.publish(t, namespace, "app", "v2", many("c", 3))
	r.ready(t, key, second.Revision)
	d := r.until(t, key, "the prune is held", isHeld)
	message := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition)
	if !strings.HasPrefix(message, "9 of 12 objects") || !strings.Contains(message, "ConfigMap "+namespace+"/c03") || !strings.Contains(message, "raise spec.prune.limit") {
		t.Error(message)
	}
	if !conditions.IsTrue(d, "Ready") || d.Status.Inventory.Count != 12 || d.Status.Plan.Delete != 0 || conditions.Get(d, "Reconciling") != nil {
		t.Errorf("while it is held:\n%s", describe(d))
	}
	r.looks(t, namespace, "installer", 3)
	r.holds(t, namespace, "c11", "one")
	r.told(t, namespace, "PruneHeld: 9 of 12 objects")
	if events := strings.Count(strings.Join(r.events(t, namespace, "app"), "\n"), "PruneHeld: "); events != 1 {
		t.Errorf("%d events tell that it is held", events)
	}
	limit := intstr.FromString("75%")
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Prune.Limit = &limit })
	for i := 3; i < 12; i++ {
		r.gone(t, aConfigMap(namespace, fmt.Sprintf("c%02d", i)))
	}
	r.until(t, key, "nothing is held", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.Get(d, v1alpha1.ApprovalPendingCondition) == nil && d.Status.Inventory.Count == 3 && conditions.IsTrue(d, "Ready")
	})
}

// Objects of a revision that was never healthy are pruned without approval; so are
// renamed ones.
func TestPruneNotHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	bad := many("c", 12)
	bad["claim.yaml"] = file("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: never}\n" +
		"spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}")
	r.publish(t, namespace, "app", "v1", bad)
	key := r.deploy(t, namespace, "app", quick)
	r.until(t, key, "applied", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Applied.Revision != "" })
	second := r.publish(t, namespace, "app", "v2", many("c", 2))
	r.ready(t, key, second.Revision)
	r.gone(t, aConfigMap(namespace, "c11"))
	third := r.publish(t, namespace, "app", "v3", many("c", 10))
	r.ready(t, key, third.Revision)
	fourth := r.publish(t, namespace, "app", "v4", many("renamed", 10))
	r.ready(t, key, fourth.Revision)
	r.gone(t, aConfigMap(namespace, "c00"))
	r.until(t, key, "ten objects", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Inventory.Count == 10 && !isHeld(d) })
}

// Objects that have to be deleted first are gone before the new revision is applied.
func TestPruneBeforeApply(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	v1 := many("c", 2)
	v1["first.yaml"] = file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first, finalizers: [example.org/hold], annotations: {satchel.dev/prune-timing: BeforeApply}}")
	first := r.publish(t, namespace, "app", "v1", v1)
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	v2 := many("n", 1)
	v2["c00.yaml"] = configMap("c00", "two")
	second := r.publish(t, namespace, "app", "v2", v2)
	d := r.until(t, key, "it waits for what goes first", func(d *v1alpha1.BundleDeployment) bool {
		return strings.Contains(conditions.GetMessage(d, v1alpha1.AppliedCondition), "/first is being deleted")
	})
	r.handled(t, key) // it is waited for at each attempt
	if r.value(t, t.Context(), namespace, "n00") != "" || r.value(t, t.Context(), namespace, "c01") != "one" || d.Status.Applied.Revision != first.Revision {
		t.Errorf("the revision was applied before, or more was deleted:\n%s", describe(d))
	}
	r.patch(t, aConfigMap(namespace, "first"), `{"metadata":{"finalizers":null}}`)
	r.ready(t, key, second.Revision)
	r.gone(t, aConfigMap(namespace, "first"))
	r.gone(t, aConfigMap(namespace, "c01"))
}

// Objects of another tool are adopted if the spec says so; the status counts them, and
// an event names the former owner.
func TestAdoption(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", Annotations: map[string]string{
		"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop",
	}}, Data: map[string]string{"value": "theirs", "more": "theirs"}}
	if err := r.admin.Create(t.Context(), theirs, client.FieldOwner("helm")); err != nil {
		t.Fatal(err)
	}
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", quick)
	d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "Helm release shop/web") || !strings.Contains(message, "spec.apply.collisionProtection") {
		t.Error(message)
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Apply.CollisionProtection = v1alpha1.CollisionNone })
	if d = r.ready(t, key, first.Revision); d.Status.Plan.Adopt != 1 || d.Status.Plan.Create != 0 {
		t.Errorf("plan %+v", d.Status.Plan)
	}
	r.told(t, namespace, "Adopted: adopted 1 object: ConfigMap "+namespace+"/a, which belongs to Helm release shop/web")
	live := r.must(t, aConfigMap(namespace, "a"))
	if data, _, _ := unstructured.NestedStringMap(live.Object, "data"); len(data) != 1 || data["value"] != "one" || len(live.GetAnnotations()) > 0 {
		t.Errorf("data %v, annotations %v", data, live.GetAnnotations())
	}
}

// Objects that a deployment orphans are adopted by the next one, with their data.
func TestOrphanedDeploymentIsAdopted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	bundle := many("c", 12)
	first := r.publish(t, namespace, "app", "v1", bundle)
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) { d.Spec.DeletionPolicy = v1alpha1.DeletionOrphan }))
	r.ready(t, key, first.Revision)
	uid := r.must(t, aConfigMap(namespace, "c00")).GetUID()
	r.remove(t, key)
	if events := strings.Count(strings.Join(r.events(t, namespace, "app"), "\n"), "Kept: "); events > 10 {
		t.Errorf("%d events for 12 objects", events)
	}
	again := r.publish(t, namespace, "again", "v1", bundle)
	next := r.deploy(t, namespace, "again", quick)
	if d := r.ready(t, next, again.Revision); d.Status.Plan.Adopt != 12 || r.must(t, aConfigMap(namespace, "c00")).GetUID() != uid {
		t.Errorf("plan %+v", d.Status.Plan)
	}
}

// A change of an immutable field recreates the object, once, if the spec allows it; the
// plan counts it and an event names it.
func TestF27Recreated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": workload("web", "example.org/web:1")})
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) { d.Spec.Apply.Recreate = v1alpha1.RecreateOnImmutableChange }))
	r.ready(t, key, first.Revision)
	web := object("apps/v1", "Deployment", namespace, "web")
	uid := r.must(t, web).GetUID()
	since := r.mark(t)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{
		"a.yaml": configMap("a", "two"), "b.yaml": file(strings.ReplaceAll(string(workload("web", "example.org/web:2").Data), "app: web", "app: other")),
	})
	r.ready(t, key, second.Revision)
	if r.must(t, web).GetUID() == uid {
		t.Error("it is the same object")
	}
	r.told(t, namespace, "Recreated: deleted 1 object to recreate it, since immutable fields change: Deployment.apps "+namespace+"/web")
	deleted := r.audit(t, since, func(e controlplane.AuditEvent) bool {
		return e.Verb == "delete" && e.Namespace == namespace && e.Resource == "deployments" && e.Code != http.StatusConflict // its status moved meanwhile
	})
	if len(deleted) != 1 {
		t.Errorf("deleted %d times: %v", len(deleted), deleted)
	}
}

// If status and cache are both lost, as in a restore from a backup on another volume,
// objects that left the bundle meanwhile are found by their labels and pruned, and a
// removal removes everything.
func TestInventoryRebuilt(t *testing.T) {
	t.Parallel()
	for _, removal := range []bool{false, true} {
		t.Run(fmt.Sprintf("removal %v", removal), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			namespace := r.namespace(t)
			first := r.publish(t, namespace, "app", "v1", many("c", 4))
			key := r.deploy(t, namespace, "app", quick)
			r.ready(t, key, first.Revision)
			r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
			r.handled(t, key)
			r.loseEverything(t, key)
			if removal {
				r.remove(t, key)
				r.gone(t, aConfigMap(namespace, "c00"))
				r.gone(t, aConfigMap(namespace, "c03"))
				return
			}
			second := r.publish(t, namespace, "app", "v2", many("c", 2))
			r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = false })
			r.ready(t, key, second.Revision)
			r.gone(t, aConfigMap(namespace, "c03"))
			r.told(t, namespace, "InventoryRebuilt: the inventory was lost; 4 objects were found")
		})
	}
}

// An unreadable inventory does not block the removal of a deployment, nor of its objects here:
// they are found by their labels. On another cluster nothing is looked for.
func TestUnreadableInventoryAtRemoval(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		t.Run(fmt.Sprintf("elsewhere %v", elsewhere), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			namespace := r.namespace(t)
			first := r.publish(t, namespace, "app", "v1", many("c", 4))
			key := r.deploy(t, namespace, "app", quick)
			d := r.ready(t, key, first.Revision)
			r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
			r.handled(t, key)
			target := d.Status.Inventory.Target
			if elsewhere {
				target = "of-another-cluster"
			}
			r.loses(t, key, v1alpha1.BundleDeploymentStatus{Inventory: &v1alpha1.Inventory{
				Target: target, Count: 4, Entries: []v1alpha1.InventoryEntry{{ID: "nothing that is an identity"}},
			}})
			r.startRemoval(t, key)
			if elsewhere {
				r.until(t, key, "the removal stalls", func(d *v1alpha1.BundleDeployment) bool {
					return conditions.GetReason(d, "Ready") == v1alpha1.ReasonTargetChanged
				})
				r.must(t, aConfigMap(namespace, "c00"))
				r.loses(t, key, v1alpha1.BundleDeploymentStatus{})
			}
			r.remove(t, key)
			for _, name := range []string{"c00", "c03"} {
				r.gone(t, aConfigMap(namespace, name))
			}
			if !elsewhere {
				r.told(t, namespace, "InventoryRebuilt: the inventory could not be read; 4 objects were found")
			}
		})
	}
}

// loseEverything deletes the status of a deployment and its snapshot.
func (r *rig) loseEverything(t *testing.T, key client.ObjectKey) {
	t.Helper()
	r.loses(t, key, v1alpha1.BundleDeploymentStatus{})
}

// loses replaces the status of a deployment, and deletes its snapshot.
func (r *rig) loses(t *testing.T, key client.ObjectKey, left v1alpha1.BundleDeploymentStatus) {
	t.Helper()
	var d v1alpha1.BundleDeployment
	if err := r.admin.Get(t.Context(), key, &d); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(shared.dir, "cache", "applied", string(d.UID)+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range kept {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	d.Status = left
	if err := r.admin.Status().Update(t.Context(), &d); err != nil {
		t.Fatal(err)
	}
}
