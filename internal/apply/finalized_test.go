// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/tests/workspace"
)

// A removal names the custom resources with finalizers (koku-service-operator #135): without their controller they cannot be deleted. The
// finalizers of the API server need none.
func TestRemovalNamesFinalizers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, finalizers string
		want               []string
	}{
		"of an operator":    {"it is removed", `["cask.example.org/cleanup"]`, []string{"/one have finalizers (cask.example.org/cleanup)", "install the operator again"}},
		"of the API server": {"it removes them itself", `["orphan"]`, nil},
		"none":              {"nothing keeps it", `[]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, workspace.Everything...)
			w.GrantCluster("installer", workspace.Everything...)
			w.endCasks()
			w.applyCasks(casks(w.Namespace, noConversion, "v1!"))
			workspace.Eventually(t, "a cask", func() error { return w.brews("v1", "one") })
			resource := w.Dynamic.Resource(schema.GroupVersionResource{Group: w.Namespace + ".example.org", Version: "v1", Resource: "casks"}).Namespace(w.Namespace)
			set := func(finalizers string) {
				t.Helper()
				if _, err := resource.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			set(tc.finalizers)
			notes := strings.Join(w.removeAll(), "; ")
			set("[]")
			if tc.want == nil && strings.Contains(notes, "have finalizers") {
				t.Errorf("%s: notes %q", tc.reason, notes)
			}
			for _, words := range tc.want {
				if !strings.Contains(notes, words) {
					t.Errorf("%s: notes %q do not say %q", tc.reason, notes, words)
				}
			}
		})
	}
}
