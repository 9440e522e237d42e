// SPDX-License-Identifier: Apache-2.0

package stage_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
)

// A patch of lean states is the patch of the whole ones.
func TestLeanStatesHaveTheSamePatch(t *testing.T) {
	t.Parallel()
	entries := []v1alpha1.InventoryEntry{{ID: "a"}}
	states := map[string]*v1alpha1.Inventory{
		"nothing":    nil,
		"empty":      {Target: "one"},
		"listed":     {Target: "one", Count: 1, Entries: entries},
		"compressed": {Target: "one", Count: 300, Compressed: strings.Repeat("x", 1000)},
		"count":      {Target: "one", Count: 301, Compressed: strings.Repeat("x", 1000)},
		"other":      {Target: "two", Count: 300, Compressed: strings.Repeat("y", 1000)},
		"recovered":  {Target: "one", Count: 300, Compressed: strings.Repeat("y", 1000), Recovered: true},
	}
	of := func(inventory *v1alpha1.Inventory, message string) *v1alpha1.BundleDeployment {
		d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
		d.Status.Conditions = []metav1.Condition{{Type: "Ready", Message: message}}
		d.Status.Inventory = inventory.DeepCopy()
		return d
	}
	patch := func(before, object client.Object) string {
		data, err := client.MergeFrom(before).Data(object)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for from, was := range states {
		for to, is := range states {
			before, object := of(was, "before"), of(is, "after")
			want := patch(before, object)
			if got := patch(stage.Lean(before, object)); got != want {
				t.Errorf("from %s to %s: the patch is %s, want %s", from, to, got, want)
			}
			if patch(before, object) != want {
				t.Errorf("from %s to %s: the states were changed", from, to)
			}
		}
	}
	if before, object := stage.Lean(of(states["compressed"], ""), of(states["compressed"], "")); len(patch(of(nil, ""), before))+len(patch(of(nil, ""), object)) > 500 {
		t.Error("lean states still have the compressed inventory")
	}
}
