// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/tests/workspace"
)

// lodger creates a ConfigMap with a controller and returns its UID.
func (w *world) lodger(namespace, name string, controller metav1.OwnerReference) types.UID {
	w.T.Helper()
	yes := true
	controller.Controller = &yes
	object := w.Objects(`{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `}}`)[0]
	object.SetOwnerReferences([]metav1.OwnerReference{controller})
	created, err := w.Dynamic.Resource(configMaps).Namespace(namespace).Create(w.T.Context(), object, metav1.CreateOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() {
		_ = w.Dynamic.Resource(configMaps).Namespace(namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	return created.GetUID()
}

func (w *world) evict(namespace string, names ...string) {
	w.T.Helper()
	for _, name := range names {
		if err := w.Dynamic.Resource(configMaps).Namespace(namespace).Delete(w.T.Context(), name, metav1.DeleteOptions{}); err != nil {
			w.T.Fatal(err)
		}
	}
}

// Objects that a workload of the bundle left behind are waited for, over several controllers,
// for they are collected soon; then the namespace is deleted.
func TestF22ControlledByWhatWent(t *testing.T) {
	t.Parallel() // waits for the garbage collector
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Rule("*", "*", "*"))
	own := w.own()
	w.MustApply(ownNamespace)
	web, err := w.Admin.AppsV1().Deployments(own).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set := w.lodger(own, "set", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: web.UID})
	w.lodger(own, "pod", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "set", UID: set})
	if notes := w.removeAll(); len(notes) > 0 {
		t.Errorf("left behind: %v", notes)
	}
}

// An object with a made-up controller does not block a removal: the namespace
// is kept, with a note, and the removal ends.
func TestF22ControlledByWhatStays(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Rule("*", "*", "*"))
	own := w.own()
	standing, err := w.Admin.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceDefault, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, controller := range map[string]metav1.OwnerReference{
		"object of the cluster": {APIVersion: "v1", Kind: "Namespace", Name: standing.Name, UID: standing.UID},
		"kind not served":       {APIVersion: "example.org/v1", Kind: "Nothing", Name: "x", UID: "some"},
		"version not served":    {APIVersion: "apps/v0", Kind: "Deployment", Name: "x", UID: "some"},
	} {
		w.MustApply(ownNamespace)
		w.lodger(own, "lodger", controller)
		notes := strings.Join(w.removeAll(), "; ")
		if !strings.Contains(notes, "Namespace "+own+" is kept") || !strings.Contains(notes, "ConfigMap lodger lives in it, controlled by "+controller.Kind) {
			t.Errorf("%s: notes %q", name, notes)
		}
		w.evict(own, "lodger")
	}
	w.MustApply(ownNamespace)
	first := w.lodger(own, "first", metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: standing.Name, UID: standing.UID})
	second := w.lodger(own, "second", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "first", UID: first})
	circle := []byte(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"second","uid":"` + string(second) + `","controller":true}]}}`)
	if _, err := w.Dynamic.Resource(configMaps).Namespace(own).Patch(t.Context(), "first", types.MergePatchType, circle, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(w.removeAll(), "; "); !strings.Contains(notes, "Namespace "+own+" is kept") {
		t.Errorf("a circle: notes %q", notes)
	}
}
