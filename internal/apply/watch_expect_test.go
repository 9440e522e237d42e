// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// expect announces that ConfigMaps are about to be created.
func (d *watched) expect(key drift.Key, names ...string) {
	s := drift.Subscription{Client: d.client, Owner: d.owner, Target: "here", Drift: true}
	for _, name := range names {
		s.Objects = append(s.Objects, drift.Object{
			Entry:    inventory.Entry{ID: inventory.ID{Kind: "ConfigMap", Namespace: d.namespace, Name: name}},
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		})
	}
	d.hub.Expect(key, s)
}

// watchLists counts the lists of watches since a position in the audit log.
func (d *watched) watchLists(since controlplane.AuditMark) int {
	d.t.Helper()
	events, err := d.cp.Audit(since)
	if err != nil {
		d.t.Fatal(err)
	}
	lists := 0
	for _, e := range events {
		if e.Verb == "list" && e.Namespace == d.namespace && strings.Contains(e.RequestURI, "labelSelector=") {
			lists++
		}
	}
	return lists
}

const thirdMap = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: three}\ndata: {colour: red}\n"

// Expected objects are reported from their first event on, and need no list, whatever other
// objects the watch is for.
func TestExpectedObjectsAreNotListed(t *testing.T) {
	w := newWorld(t, everything...)
	w.mustApply(twoMaps)
	d := w.watch(drift.Options{Relist: 10 * time.Millisecond})
	d.open()
	mark := w.mark()
	d.hub.Begin(d.key)
	d.expect(d.key, "three")
	w.mustApply(twoMaps + thirdMap)
	w.patch(types.MergePatchType, "three", `{"data":{"colour":"green"}}`, "kubectl-edit") // before anybody subscribes
	d.subscribe()
	d.hub.End(d.key)
	d.drifted("three")
	if lists := d.watchLists(mark); lists != 0 {
		t.Errorf("%d lists, want none", lists)
	}
	w.mustApply(twoMaps + thirdMap)
	d.subscribe()
	d.drifted()
}

// Expected objects that are never created leave nothing behind.
func TestExpectedInVain(t *testing.T) {
	w := newWorld(t, everything...)
	w.mustApply(twoMaps)
	d := w.watch(drift.Options{})
	d.open()
	before, other := d.hub.Figures(), types.NamespacedName{Namespace: w.namespace, Name: "other"}
	for _, key := range []drift.Key{d.key, other} {
		d.hub.Begin(key)
		d.expect(key, "never", "one")
		d.hub.End(key)
	}
	if after := d.hub.Figures(); after.Objects != before.Objects || after.Open != before.Open {
		t.Errorf("%+v, before %+v", after, before)
	}
	if found := d.hub.Begin(other); found.Watched {
		t.Errorf("a deployment that has nothing is watched: %+v", found)
	}
	woken := d.wakes()
	never := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "never", Labels: d.owner.Labels()}}
	if _, err := w.admin.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), never, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d.remove("one") // its event comes after the other one
	d.drifted("one")
	if got := d.wakes(); got != woken+1 {
		t.Errorf("woken %d times, want once", got-woken)
	}
}

// Several requests for a list at about the same time share one.
func TestListsAreShared(t *testing.T) {
	w := newWorld(t, everything...)
	w.mustApply(twoMaps)
	d := w.watch(drift.Options{Relist: time.Second})
	d.open()
	names := []string{}
	for i := range 20 {
		name := fmt.Sprintf("m-%02d", i)
		names = append(names, name)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: d.owner.Labels()}}
		if _, err := w.admin.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mark, began := w.mark(), time.Now()
	for i, name := range names {
		entry := inventory.Entry{ID: inventory.ID{Kind: "ConfigMap", Namespace: w.namespace, Name: name}}
		d.hub.Set(types.NamespacedName{Namespace: w.namespace, Name: name}, drift.Subscription{
			Client: d.client, Owner: d.owner, Target: "here", Drift: true,
			Objects: []drift.Object{{Entry: entry, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}},
		})
		w.patch(types.MergePatchType, "one", fmt.Sprintf(`{"data":{"colour":"%d"}}`, i), "kubectl-edit")
		d.drifted("one") // the watch goes on, and takes time
		w.mustApply(twoMaps)
		d.subscribe()
		d.drifted()
	}
	eventually(t, "what they asked for is told", func() error {
		for _, name := range names {
			key := types.NamespacedName{Namespace: w.namespace, Name: name}
			found := d.hub.Begin(key)
			d.hub.End(key)
			if len(found.Drifted) == 0 {
				return fmt.Errorf("nothing is known of %s", name)
			}
		}
		return nil
	})
	if lists, most := d.watchLists(mark), 2+int(time.Since(began)/time.Second); lists > most {
		t.Errorf("%d lists for %d deployments, want at most %d", lists, len(names), most)
	}
}
