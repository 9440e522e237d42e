// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/workspace"
)

func TestMain(m *testing.M) { os.Exit(controlplane.RunMain(m)) }

const scaled = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:v1"}]}
`

// watched is a workspace with a deployment that is woken for changes of its objects.
type watched struct {
	*workspace.Workspace
	hub *drift.Hub
	key drift.Key

	mu    sync.Mutex
	woken int
}

// watch subscribes to the applied objects of a workspace.
func watch(w *workspace.Workspace, o drift.Options) *watched {
	w.T.Helper()
	d := &watched{Workspace: w, key: types.NamespacedName{Namespace: w.Namespace, Name: "app"}}
	o.Wake = func(drift.Key, time.Duration) { d.mu.Lock(); d.woken++; d.mu.Unlock() }
	o.Retry, o.Refused, o.Settle = 50*time.Millisecond, 50*time.Millisecond, 2*time.Second
	o.Exists = w.Pool.AccountExists
	d.hub = drift.New(o)
	w.T.Cleanup(d.hub.Close)
	d.subscribe()
	return d
}

// subscribe reports how the objects were left.
func (d *watched) subscribe() {
	d.T.Helper()
	s := drift.Subscription{Client: d.Client, Owner: d.Owner, Target: "here", Drift: true}
	resources := map[string]schema.GroupVersionResource{
		"ConfigMap": {Version: "v1", Resource: "configmaps"}, "Deployment": {Group: "apps", Version: "v1", Resource: "deployments"},
	}
	for _, entry := range d.Inventory.Entries {
		s.Objects = append(s.Objects, drift.Object{Entry: entry, Resource: resources[entry.Kind], Health: entry.Kind == "Deployment", Looked: "0"})
	}
	d.hub.Set(d.key, s)
}

// findings are what the deployment should read now.
func (d *watched) findings() drift.Findings {
	found := d.hub.Begin(d.key)
	d.hub.End(d.key)
	return found
}

// open waits until everything is watched.
func (d *watched) open() {
	d.T.Helper()
	workspace.Eventually(d.T, "everything is watched", func() error {
		if found := d.findings(); !found.Watched {
			return fmt.Errorf("gaps: %v", found.Gaps)
		}
		return nil
	})
}

// drifted waits until exactly these objects have drifted.
func (d *watched) drifted(names ...string) {
	d.T.Helper()
	workspace.Eventually(d.T, "drift of "+strings.Join(names, " "), func() error {
		var got []string
		for _, id := range d.findings().Drifted {
			got = append(got, id.Name)
		}
		if !slices.Equal(got, names) {
			return fmt.Errorf("got %v", got)
		}
		return nil
	})
}

func (d *watched) wakes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.woken
}

func (d *watched) remove(name string) {
	d.T.Helper()
	if err := d.Admin.CoreV1().ConfigMaps(d.Namespace).Delete(d.T.Context(), name, metav1.DeleteOptions{}); err != nil {
		d.T.Fatal(err)
	}
}

// Every kind of drift is reported, and our own repair is not.
func TestF26WatchTellsDrift(t *testing.T) {
	w := workspace.New(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	d := watch(w, drift.Options{})
	d.open()
	damages := map[string]func(){
		"edited":         func() { w.Patch(types.MergePatchType, "one", `{"data":{"colour":"green"}}`, "kubectl-edit") },
		"field removed":  func() { w.Patch(types.MergePatchType, "one", `{"data":{"size":null}}`, "kubectl-edit") },
		"label stripped": func() { w.Patch(types.MergePatchType, "one", `{"metadata":{"labels":null}}`, "kubectl-label") },
		"fields stripped": func() {
			w.Patch(types.MergePatchType, "one", `{"metadata":{"managedFields":[{}]}}`, "kubectl-edit")
		},
		"deleted":     func() { d.remove("one") },
		"annotated":   func() { w.Patch(types.MergePatchType, "one", `{"metadata":{"annotations":{"a":"b"}}}`, "other") },
		"taken twice": func() { d.remove("one"); w.MustApply(workspace.TwoMaps); d.remove("one") },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			before := d.wakes()
			damage()
			d.drifted("one")
			if d.wakes() == before {
				t.Error("the deployment was not woken")
			}
			d.hub.Begin(d.key)
			w.MustApply(workspace.TwoMaps)
			d.subscribe()
			d.hub.End(d.key)
			d.drifted()
			settled := d.wakes()
			w.Patch(types.MergePatchType, "two", `{"data":{"colour":"blue"}}`, "kubectl-edit") // its event comes after all others
			d.drifted("two")
			if got := d.wakes(); got != settled+1 {
				t.Errorf("woken %d times for a repair of ours, want 0", got-settled-1)
			}
			w.MustApply(workspace.TwoMaps)
			d.subscribe()
			d.drifted()
		})
	}
}

// A status update is not reported as drift. A scale by a manager that scaled before leaves
// no more trace in the managed fields than a new order of a list: it costs one apply
// that changes nothing.
func TestF25WatchPassesOverStatusAndScale(t *testing.T) {
	w := workspace.New(t, workspace.Everything...)
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 9,
		},
	}
	if _, err := w.Admin.AutoscalingV2().HorizontalPodAutoscalers(w.Namespace).Create(t.Context(), autoscaler, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.MustApply(scaled)
	w.Scale("3", "kube-controller-manager")
	w.MustApply(scaled) // the replicas are excluded
	d := watch(w, drift.Options{})
	d.open()
	if _, err := w.Admin.AppsV1().Deployments(w.Namespace).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"status":{"unavailableReplicas":3}}`), metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "status"); err != nil {
		t.Fatal(err)
	}
	workspace.Eventually(t, "the status is told", func() error {
		if found := d.findings(); len(found.Changed) != 1 {
			return fmt.Errorf("changed: %v", found.Changed)
		}
		return nil
	})
	d.drifted()
	for _, replicas := range []string{"4", "5", "6"} {
		w.Scale(replicas, "kube-controller-manager")
	}
	workspace.Eventually(t, "the scale is told", func() error {
		if found := d.findings(); len(found.Drifted) != 1 {
			return fmt.Errorf("drifted: %v", found.Drifted)
		}
		return nil
	})
	if result := w.MustApply(scaled); result.Count(apply.Settled) != 1 || w.Replicas() != 6 {
		t.Errorf("%d replicas: %v", w.Replicas(), workspace.Kinds(result))
	}
}

// A watch without permission is reported as a gap, and opened when the permission is granted.
func TestT5WatchNeedsRights(t *testing.T) {
	w := workspace.New(t, workspace.Rule("", "configmaps", "get,patch,create,delete"))
	w.MustApply(workspace.TwoMaps)
	d := watch(w, drift.Options{})
	workspace.Eventually(t, "the gap is told", func() error {
		found := d.findings()
		if len(found.Gaps) != 1 || found.Watched || found.Gaps[0].String() != "configmaps in "+w.Namespace+": service account "+w.Namespace+"/installer may not list and watch them" {
			return fmt.Errorf("%v", found.Gaps)
		}
		return nil
	})
	before := d.wakes()
	w.Grant("installer", workspace.Rule("", "configmaps", "list,watch"))
	d.open()
	if d.wakes() == before {
		t.Error("the new watch was not reported")
	}
	w.Patch(types.MergePatchType, "one", `{"data":{"colour":"green"}}`, "kubectl-edit")
	d.drifted("one")
}

// When the permission is removed, or the account is deleted, the watch ends.
func TestT5WatchEndsWithTheRights(t *testing.T) {
	for name, take := range map[string]func(*workspace.Workspace){
		"rights": func(w *workspace.Workspace) {
			if err := w.Admin.RbacV1().RoleBindings(w.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"account": func(w *workspace.Workspace) {
			if err := w.Admin.CoreV1().ServiceAccounts(w.Namespace).Delete(t.Context(), "installer", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := workspace.New(t, workspace.Everything...)
			w.MustApply(workspace.TwoMaps)
			d := watch(w, drift.Options{Lifetime: 2 * time.Second})
			d.open()
			take(w)
			workspace.Eventually(t, "the watch ends", func() error {
				if found := d.findings(); len(found.Gaps) != 1 || d.hub.Figures().Open != 0 {
					return fmt.Errorf("%+v", d.hub.Figures())
				}
				return nil
			})
		})
	}
}

// A watch that ends and begins again misses nothing, and neither does one that has
// to list again.
func TestWatchGoesOn(t *testing.T) {
	w := workspace.New(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	d := watch(w, drift.Options{Lifetime: time.Second})
	d.open()
	for i := range 6 {
		w.Patch(types.MergePatchType, "one", fmt.Sprintf(`{"data":{"colour":"green-%d"}}`, i), "kubectl-edit")
		d.drifted("one")
		w.MustApply(workspace.TwoMaps)
		d.subscribe()
		d.drifted()
		time.Sleep(300 * time.Millisecond) // the watch ends now and then
	}
	more := workspace.TwoMaps + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: three}\ndata: {colour: red}\n"
	w.MustApply(more)
	w.Patch(types.MergePatchType, "three", `{"data":{"colour":"green"}}`, "kubectl-edit") // before anybody subscribes
	d.subscribe()
	d.drifted("three")
}

// No more watches are open than the limit; an ended one makes room.
func TestWatchLimit(t *testing.T) {
	w := workspace.New(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps + "---" + scaled)
	d := watch(w, drift.Options{Limit: 4}) // one for an account
	workspace.Eventually(t, "one of two is watched", func() error {
		if found := d.findings(); len(found.Gaps) != 1 || d.hub.Figures().Open != 1 || !strings.Contains(found.Gaps[0].Why, "--watch-limit") {
			return fmt.Errorf("%v %+v", found.Gaps, d.hub.Figures())
		}
		return nil
	})
	w.Inventory = inventory.New("", w.Inventory.Entries[len(w.Inventory.Entries)-1:]...)
	d.subscribe()
	d.subscribe()
	d.open()
}

// Watches that no deployment needs leave nothing behind.
func TestWatchLeavesNothing(t *testing.T) {
	w := workspace.New(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps + "---" + scaled)
	before := runtime.NumGoroutine()
	d := watch(w, drift.Options{})
	d.open()
	d.hub.Drop(d.key)
	workspace.Eventually(t, "all goroutines end", func() error {
		if now := runtime.NumGoroutine(); now > before+2 || d.hub.Figures() != (drift.Figures{Events: d.hub.Figures().Events}) {
			return fmt.Errorf("%d goroutines, %d before; %+v", now, before, d.hub.Figures())
		}
		return nil
	})
}
