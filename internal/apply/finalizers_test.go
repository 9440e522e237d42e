// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/tests/workspace"
)

// Finalizers of the bundle are set when an object is created, and not put back when their controller removes them: not by a plan
// without changes, by a correction of drift or by a new revision. Finalizers that the controller adds stay.
func TestF53FinalizersAreNotOwned(t *testing.T) {
	const head = "metadata: {name: one, finalizers: [example.org/work, example.org/more]}\n"
	fleet := "apiVersion: example.org/v1\nkind: Fleet\n" + head + "spec: {size: 1, name: "
	for name, tc := range map[string]struct{ manifest, next, drift string }{
		"ConfigMap":       {"apiVersion: v1\nkind: ConfigMap\n" + head + "data: {a: b}\n", "apiVersion: v1\nkind: ConfigMap\n" + head + "data: {a: c}\n", `{"data":{"a":"x"}}`},
		"custom resource": {fleet + "a}\n", fleet + "b}\n", `{"spec":{"name":"x"}}`},
	} {
		for what, left := range map[string]struct {
			finalizers string
			want       []string
		}{
			"removes all":      {"null", nil},
			"removes one":      {`["example.org/more"]`, []string{"example.org/more"}},
			"has its own only": {`["example.org/own"]`, []string{"example.org/own"}},
		} {
			t.Run(name+", its controller "+what, func(t *testing.T) {
				w := newWorld(t, workspace.Everything...)
				w.scalerKinds()
				w.MustApply(tc.manifest)
				object := w.Plan(w.Objects(tc.manifest)).Stages[0].Actions[0]
				objects := w.Dynamic.Resource(object.Resource).Namespace(w.Namespace)
				expect := func(when string, want []string) {
					t.Helper()
					now, err := objects.Get(t.Context(), "one", metav1.GetOptions{})
					if err != nil || !slices.Equal(now.GetFinalizers(), want) {
						t.Errorf("%s: finalizers %v, %v, want %v", when, now.GetFinalizers(), err, want)
					}
					for _, entry := range now.GetManagedFields() {
						if entry.Manager == w.Owner.Manager() && strings.Contains(entry.FieldsV1.GetRawString(), "f:finalizers") {
							t.Errorf("%s: the deployment owns %s", when, entry.FieldsV1.GetRawString())
						}
					}
				}
				patch := func(text string) {
					t.Helper()
					if _, err := objects.Patch(t.Context(), "one", types.MergePatchType, []byte(text), metav1.PatchOptions{FieldManager: "controller"}); err != nil {
						t.Fatal(err)
					}
				}
				expect("created", []string{"example.org/work", "example.org/more"})
				patch(`{"metadata":{"finalizers":` + left.finalizers + `}}`)
				w.MustApply(tc.manifest)
				expect("without a change", left.want)
				patch(tc.drift)
				w.MustApply(tc.manifest)
				expect("drift", left.want)
				w.MustApply(tc.next)
				expect("the next revision", left.want)
				if p := w.Plan(w.Objects(tc.next)); !p.Quiet() {
					t.Errorf("afterwards: %s", p.Summary())
				}
				patch(`{"metadata":{"finalizers":null}}`)
			})
		}
	}
}
