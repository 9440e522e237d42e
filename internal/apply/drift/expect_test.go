// SPDX-License-Identifier: Apache-2.0

package drift_test

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
	"github.com/satchel-dev/satchel/tests/workspace"
)

// expect announces that ConfigMaps are about to be created.
func (d *watched) expect(key drift.Key, names ...string) {
	s := drift.Subscription{Client: d.Client, Owner: d.Owner, Target: "here", Drift: true}
	for _, name := range names {
		s.Objects = append(s.Objects, drift.Object{
			Entry:    inventory.Entry{ID: inventory.ID{Kind: "ConfigMap", Namespace: d.Namespace, Name: name}},
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		})
	}
	d.hub.Expect(key, s)
}

// watchLists counts the lists of watches since a position in the audit log.
func (d *watched) watchLists(since controlplane.AuditMark) int {
	d.T.Helper()
	events, err := d.ControlPlane.Audit(since)
	if err != nil {
		d.T.Fatal(err)
	}
	lists := 0
	for _, e := range events {
		if e.Verb == "list" && e.Namespace == d.Namespace && strings.Contains(e.RequestURI, "labelSelector=") {
			lists++
		}
	}
	return lists
}

const thirdMap = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: three}\ndata: {colour: red}\n"

// Expected objects are reported from their first event on, and need no list, whatever other
// objects the watch is for.
func TestExpectedObjectsAreNotListed(t *testing.T) {
	w := workspace.New(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	d := watch(w, drift.Options{Relist: 10 * time.Millisecond})
	d.open()
	mark := w.AuditMark()
	d.hub.Begin(d.key)
	d.expect(d.key, "three")
	w.MustApply(workspace.TwoMaps + thirdMap)
	w.Patch(types.MergePatchType, "three", `{"data":{"colour":"green"}}`, "kubectl-edit") // before anybody subscribes
	d.subscribe()
	d.hub.End(d.key)
	d.drifted("three")
	if lists := d.watchLists(mark); lists != 0 {
		t.Errorf("%d lists, want none", lists)
	}
	w.MustApply(workspace.TwoMaps + thirdMap)
	d.subscribe()
	d.drifted()
}

// Expected objects that are never created leave nothing behind.
func TestExpectedInVain(t *testing.T) {
	w := workspace.New(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	d := watch(w, drift.Options{})
	d.open()
	before, other := d.hub.Figures(), types.NamespacedName{Namespace: w.Namespace, Name: "other"}
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
	never := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "never", Labels: d.Owner.Labels()}}
	if _, err := w.Admin.CoreV1().ConfigMaps(w.Namespace).Create(t.Context(), never, metav1.CreateOptions{}); err != nil {
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
	w := workspace.New(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	d := watch(w, drift.Options{Relist: time.Second})
	d.open()
	names := []string{}
	for i := range 20 {
		name := fmt.Sprintf("m-%02d", i)
		names = append(names, name)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: d.Owner.Labels()}}
		if _, err := w.Admin.CoreV1().ConfigMaps(w.Namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mark, began := w.AuditMark(), time.Now()
	for i, name := range names {
		entry := inventory.Entry{ID: inventory.ID{Kind: "ConfigMap", Namespace: w.Namespace, Name: name}}
		d.hub.Set(types.NamespacedName{Namespace: w.Namespace, Name: name}, drift.Subscription{
			Client: d.Client, Owner: d.Owner, Target: "here", Drift: true,
			Objects: []drift.Object{{Entry: entry, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}},
		})
		w.Patch(types.MergePatchType, "one", fmt.Sprintf(`{"data":{"colour":"%d"}}`, i), "kubectl-edit")
		d.drifted("one") // the watch goes on, and takes time
		w.MustApply(workspace.TwoMaps)
		d.subscribe()
		d.drifted()
	}
	workspace.Eventually(t, "what they asked for is told", func() error {
		for _, name := range names {
			key := types.NamespacedName{Namespace: w.Namespace, Name: name}
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
