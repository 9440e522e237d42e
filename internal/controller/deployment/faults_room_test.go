// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/spec/planning"
)

// F43: whether the inventory of a plan can be stored once it is applied is judged before the
// first write: at the limit nothing is created, a little below it everything is applied and
// stays applied, and a revision that renames everything leaves the last one in place.
func TestF43InventoryThatWillNotFit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	const room = inventory.Limit(16 << 10)
	limit := 300
	for ; room.CheckPlanned(inventory.Inventory{}, planOf(namespace, "old", limit), nil) == nil; limit++ { //nolint:revive // the condition does the work
	}
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
		rarely(d)
		d.Labels = map[string]string{driven: ""}
	})
	t.Cleanup(func() { r.undrive(t, key) })
	d := r.drive(t, key, nil)
	d.room = room
	d = d.again(t, nil)

	refused := func(what string) {
		t.Helper()
		var found *v1alpha1.BundleDeployment
		r.eventually(t, t.Context(), what+" is judged", func(context.Context) (bool, string) {
			d.reconcile(t) // which ends while the bundle is converted
			found = d.deployment(t)
			return conditions.IsTrue(found, "Stalled"), describe(found)
		})
		if message := conditions.GetMessage(found, "Stalled"); conditions.GetReason(found, "Stalled") != v1alpha1.ReasonPlanRefused || !strings.Contains(message, "split the bundle") {
			t.Fatalf("%s is not refused:\n%s", what, describe(found))
		}
	}
	r.publish(t, namespace, "app", "v1", manyMaps("old", limit))
	refused("what just does not fit")
	if n := r.maps(t, namespace); n != 0 {
		t.Fatalf("%d objects were created of a plan that is refused", n)
	}

	fitting := limit * 99 / 100
	second := r.publish(t, namespace, "app", "v2", manyMaps("old", fitting))
	d.ready(t)
	if n := r.maps(t, namespace); n != fitting {
		t.Fatalf("%d objects of %d", n, fitting)
	}
	mark := r.mark(t)
	d = d.again(t, nil)
	d.ready(t)
	if written := r.writes(t, namespace, mark); len(written) > 0 {
		t.Errorf("written again: %v", written)
	}

	r.publish(t, namespace, "app", "v3", manyMaps("new", fitting))
	refused("a rename of everything")
	r.patch(t, aConfigMap(namespace, "old-0007"), `{"data":{"value":"theirs"}}`)
	r.eventually(t, t.Context(), "drift of the last revision is corrected", func(ctx context.Context) (bool, string) {
		d.reconcile(t)
		got := r.value(t, ctx, namespace, "old-0007")
		return got == "one", got
	})
	if got, n := r.value(t, t.Context(), namespace, "old-0007"), r.maps(t, namespace); got != "one" || n != fitting || d.deployment(t).Status.Applied.Revision != second.Revision {
		t.Errorf("the last revision is not kept: %q, %d objects of %d", got, n, fitting)
	}
}

// F43: a revision renames all objects, and the status cannot hold the whole state of both revisions. The apply fails half way, the
// former revision is corrected while the next one is broken, the controller is restarted in between, and then it goes back or
// on. What left is pruned, nothing else is lost, and an object that another tool created in place of one stays.
func TestF43AllObjectsAreRenamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tests := map[string]struct {
		count    int
		contents bool // there is room for the contents of the objects that left, not for what tells their drift
		last     string
		replaced string
	}{
		"back, contents recorded": {370, true, "old", "new-0003"},
		"back, no contents":       {440, false, "old", "new-0003"},
		"on, no contents":         {440, false, "new", "old-0003"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
				rarely(d)
				d.Labels = map[string]string{driven: ""}
			})
			t.Cleanup(func() { r.undrive(t, key) })
			d := r.drive(t, key, nil)
			d.room = 16 << 10
			d = d.again(t, nil)
			r.publish(t, namespace, "app", "v1", manyMaps("old", tc.count))
			d.ready(t)

			half := manyMaps("new", tc.count)
			more := namespace + "-more"
			half["more.yaml"] = file("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + more + "}\n---\n" +
				"apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: " + more + "}\nspec: {ports: [{port: 99999}]}\n")
			r.publish(t, namespace, "app", "v2", half)
			r.eventually(t, t.Context(), "the apply fails half way", func(context.Context) (bool, string) {
				d.reconcile(t)
				found := d.deployment(t)
				return conditions.GetReason(found, "Ready") == v1alpha1.ReasonApplyFailed, describe(found)
			})
			if n := r.maps(t, namespace); n != 2*tc.count {
				t.Fatalf("%d objects of two times %d", n, tc.count)
			}
			if states, contents := d.unrecorded(t); states != tc.count || contents > 0 != tc.contents {
				t.Fatalf("of %d objects that left, the state of %d is not recorded, but the content of %d", tc.count, states, contents)
			}

			d = d.again(t, nil)
			r.delete(t, aConfigMap(namespace, tc.replaced))
			r.create(t, foreign(namespace, tc.replaced))
			r.patch(t, aConfigMap(namespace, "old-0007"), `{"data":{"value":"theirs"}}`)
			r.publish(t, namespace, "app", "v3", broken())
			r.eventually(t, t.Context(), "drift of the last revision is corrected", func(ctx context.Context) (bool, string) {
				d.reconcile(t)
				return r.value(t, ctx, namespace, "old-0007") == "one", describe(d.deployment(t))
			})
			mark := r.mark(t)
			d.reconcile(t)
			if written := r.writes(t, namespace, mark); len(written) > 0 {
				t.Errorf("%d objects were written again", len(written))
			}

			d = d.again(t, nil)
			last := r.publish(t, namespace, "app", "v4", manyMaps(tc.last, tc.count))
			r.eventually(t, t.Context(), "what left is pruned", func(context.Context) (bool, string) {
				found, _ := d.ready(t)
				d.now = d.now.Add(time.Minute) // the Namespace is looked through later
				return found.Status.Applied.Revision == last.Revision && int(found.Status.Inventory.Count) == tc.count, describe(found)
			})
			if n := r.maps(t, namespace); n != tc.count {
				t.Errorf("%d objects of %d", n, tc.count)
			}
			for i := range tc.count {
				if name := fmt.Sprintf("%s-%04d", tc.last, i); r.value(t, t.Context(), namespace, name) != "one" {
					t.Errorf("%s is lost", name)
				}
			}
			if got := r.must(t, aConfigMap(namespace, tc.replaced)); got.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" {
				t.Errorf("the object of another tool has the labels %v", got.GetLabels())
			}
			if states, _ := d.unrecorded(t); states > 0 {
				t.Errorf("the state of %d objects is not recorded", states)
			}
		})
	}
}

// unrecorded counts the objects that were written and have no state in the inventory, and those of them that have a content.
func (d *driver) unrecorded(t *testing.T) (states, contents int) {
	t.Helper()
	listed, err := inventory.Decode(d.deployment(t).Status.Inventory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range listed.Entries {
		if entry.Confirmed() && !entry.Recorded() {
			states++
			if !entry.Rendered.IsZero() {
				contents++
			}
		}
	}
	return states, contents
}

// F43: the API server stores the largest inventory that is accepted, beside a small and a large spec, and edits after it.
func TestF43LargestInventoryIsStored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	for name, size := range map[string]int{"small": 0, "large": 400 << 10} {
		t.Run(name, func(t *testing.T) {
			key := r.deploy(t, namespace, name, func(d *v1alpha1.BundleDeployment) {
				d.Labels = map[string]string{driven: ""} // no controller reconciles it
				d.Spec.Helm = &v1alpha1.HelmOptions{Values: &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"a":%q}`, strings.Repeat("x", size))}}
			})
			var d v1alpha1.BundleDeployment
			if err := r.admin.Get(t.Context(), key, &d); err != nil {
				t.Fatal(err)
			}
			room := planning.RoomFor(&d)
			d.Status.Inventory = &v1alpha1.Inventory{Compressed: base64.StdEncoding.EncodeToString(make([]byte, room))}
			if err := r.admin.Status().Update(t.Context(), &d); err != nil {
				t.Fatalf("%d bytes beside a spec of %d: %v", room, size, err)
			}
			d.Annotations = map[string]string{"example.org/note": strings.Repeat("x", 64<<10)}
			if err := r.admin.Update(t.Context(), &d); err != nil {
				t.Errorf("an edit beside %d bytes: %v", room, err)
			}
		})
	}
}

// manyMaps are so many ConfigMaps. Each has a field of its own, so that the hashes of their managed fields differ.
func manyMaps(prefix string, count int) fstest.MapFS {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%04d}\ndata: {value: one, of-%s-%04d: x}\n", prefix, i, prefix, i)
	}
	return fstest.MapFS{"maps.yaml": file(text.String())}
}

// planOf is the inventory of a plan for them.
func planOf(namespace, prefix string, count int) inventory.Inventory {
	entries := make([]inventory.Entry, 0, count)
	for i := range count {
		entries = append(entries, inventory.Entry{
			ID: inventory.ID{Kind: "ConfigMap", Namespace: namespace, Name: fmt.Sprintf("%s-%04d", prefix, i)}, Version: "v1", Mark: inventory.Unproven,
		})
	}
	return inventory.New("00000000-0000-0000-0000-000000000000", entries...)
}

// maps counts the ConfigMaps of tests in a namespace.
func (r *rig) maps(t *testing.T, namespace string) int {
	t.Helper()
	var found corev1.ConfigMapList
	if err := r.admin.List(t.Context(), &found, client.InNamespace(namespace), client.HasLabels{inventory.LabelDeployment}); err != nil {
		t.Fatal(err)
	}
	return len(found.Items)
}
