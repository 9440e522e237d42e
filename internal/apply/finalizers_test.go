// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/tests/workspace"
)

// Finalizers of the bundle are set when an object is created, and not put back when their controller removes them.
func TestF53FinalizersAreNotOwned(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, finalizers: [example.org/work]}\ndata: {a: b}\n"
	w.MustApply(manifest)
	maps := w.Dynamic.Resource(w.Plan(w.Objects(manifest)).Stages[0].Actions[0].Resource).Namespace(w.Namespace)
	created, err := maps.Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil || len(created.GetFinalizers()) != 1 {
		t.Fatalf("created with %v, %v", created.GetFinalizers(), err)
	}
	w.Patch(types.MergePatchType, "one", `{"metadata":{"finalizers":null}}`, "controller")
	for _, next := range []string{manifest, manifest + "immutable: false\n"} {
		w.MustApply(next)
		now, err := maps.Get(t.Context(), "one", metav1.GetOptions{})
		if err != nil || len(now.GetFinalizers()) > 0 {
			t.Errorf("got %v, %v", now.GetFinalizers(), err)
		}
	}
}
