// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// verbs are the actions of the plan for each object.
func verbs(p plan.Plan) map[string]plan.Verb {
	found := map[string]plan.Verb{}
	for action := range p.Actions() {
		found[action.Name] = action.Verb
	}
	return found
}

func (w *world) data(name string) map[string]string {
	w.T.Helper()
	found, err := w.Admin.CoreV1().ConfigMaps(w.Namespace).Get(w.T.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return found.Data
}

// Every kind of drift is detected from metadata alone, repaired by one write, and
// does not affect the other object.
func TestF26Drift(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	tests := map[string]struct {
		reason string
		drift  func()
		want   plan.Verb
	}{
		"edited": {
			reason: "a changed value takes the field out of our managed fields",
			drift:  func() { w.Patch(types.MergePatchType, "one", `{"data":{"colour":"green"}}`, "kubectl-edit") },
			want:   plan.Repair,
		},
		"field removed": {
			reason: "a removed field leaves our managed fields",
			drift:  func() { w.Patch(types.MergePatchType, "one", `{"data":{"size":null}}`, "kubectl-edit") },
			want:   plan.Repair,
		},
		"owner label stripped": {
			reason: "the labels are fields of ours as well",
			drift: func() {
				w.Patch(types.MergePatchType, "one", `{"metadata":{"labels":{"satchel.dev/deployment":null}}}`, "kubectl-label")
			},
			want: plan.Repair,
		},
		"managed fields stripped": {
			reason: "without them nothing says that the fields are as applied",
			drift:  func() { w.Patch(types.MergePatchType, "one", `{"metadata":{"managedFields":[{}]}}`, "kubectl-edit") },
			want:   plan.Repair,
		},
		"managed fields stripped, then edited": {
			reason: "the API server holds the fields under a name of its own then",
			drift: func() {
				w.Patch(types.MergePatchType, "one", `{"metadata":{"managedFields":[{}]}}`, "kubectl-edit")
				w.Patch(types.MergePatchType, "one", `{"data":{"colour":"green"}}`, "kubectl-edit")
			},
			want: plan.Repair,
		},
		"deleted": {
			reason: "an applied object that is gone is drift, too",
			drift: func() {
				if err := w.Admin.CoreV1().ConfigMaps(w.Namespace).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			},
			want: plan.Repair,
		},
		"foreign annotation": {
			reason: "fields of others are none of our business; the version moved, so one no-op apply makes sure",
			drift: func() {
				w.Patch(types.MergePatchType, "one", `{"metadata":{"annotations":{"theirs":"1"}}}`, "other")
			},
			want: plan.Settle,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.drift()
			want := map[string]plan.Verb{"one": tc.want, "two": plan.Unchanged}
			if diff := cmp.Diff(want, verbs(w.Plan(w.Objects(workspace.TwoMaps)))); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", tc.reason, diff)
			}
			w.MustApply(workspace.TwoMaps)
			if diff := cmp.Diff(map[string]string{"colour": "blue", "size": "big"}, w.data("one")); diff != "" {
				t.Errorf("not repaired (-want +got):\n%s", diff)
			}
			if p := w.Plan(w.Objects(workspace.TwoMaps)); !p.Quiet() {
				t.Errorf("after the repair: %s", p.Summary())
			}
		})
	}
}

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

// Replicas that an autoscaler manages are excluded after one write; a manual
// scale is drift.
func TestF25Autoscaler(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(scaled)
	w.Scale("2", "kubectl-scale")
	w.MustApply(scaled)
	if got := w.Replicas(); got != 1 {
		t.Errorf("after kubectl scale: %d replicas, want them back at 1", got)
	}
	w.creates(anAutoscaler("autoscaling/v2", "apps/v1", "Deployment", "web"))
	w.Scale("3", "kube-controller-manager")
	w.MustApply(scaled)
	if got := w.Replicas(); got != 3 {
		t.Errorf("after the autoscaler: %d replicas, want its 3", got)
	}
	w.Scale("4", "kube-controller-manager")
	workspace.Eventually(t, "quiet", func() error {
		p := w.Plan(w.Objects(scaled))
		if p.Count(plan.Repair) > 0 {
			t.Fatalf("its second change is taken for drift: %s", p.Summary())
		}
		w.MustApply(scaled)
		if p = w.Plan(w.Objects(scaled)); !p.Quiet() {
			return fmtError(p.Summary())
		}
		return nil
	})
	w.MustApply(strings.ReplaceAll(scaled, "web:v1", "web:v2"))
	if got := w.Replicas(); got != 4 {
		t.Errorf("an upgrade took the replicas back: %d, want the autoscaler's 4", got)
	}
}

// A field that another manager holds with another value is not taken, and the
// other manager is named; there is no conflict between field managers.
func TestF25ForeignManager(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	w.Patch(types.ApplyPatchType, "one", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"theirs":"1"}}`, "gitops-of-others")
	w.MustApply(workspace.TwoMaps)
	before := w.data("one")

	wanting := strings.ReplaceAll(workspace.TwoMaps, "size: big", "size: big, theirs: ours")
	result := w.Apply(wanting)
	errs := result.Errors()
	if len(errs) != 1 || result.Count(apply.Conflict) != 1 {
		t.Fatalf("got %v, want one conflict", result.Outcomes)
	}
	for _, word := range []string{"ConfigMap " + w.Namespace + "/one", `"gitops-of-others"`, ".data.theirs"} {
		if !strings.Contains(errs[0].Error(), word) {
			t.Errorf("%q does not name %s", errs[0], word)
		}
	}
	if diff := cmp.Diff(before, w.data("one")); diff != "" {
		t.Errorf("the object was written (-want +got):\n%s", diff)
	}
}

// An upgrade takes back a field that was ours in the previous revision and that another manager
// took since, when the previous revision is at hand.
func TestF25UpgradeTakesOwnFieldsBack(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	w.Patch(types.MergePatchType, "one", `{"data":{"colour":"green"}}`, "kubectl-edit")
	next := strings.ReplaceAll(workspace.TwoMaps, "colour: blue", "colour: violet")

	if result := w.ApplyObjects(w.Objects(next), apply.Options{}); result.Count(apply.Conflict) != 1 {
		t.Errorf("without the previous revision: %v, want a conflict", workspace.Kinds(result))
	}
	previous := map[inventory.ID]*unstructured.Unstructured{}
	for _, object := range w.Objects(workspace.TwoMaps) {
		object.SetNamespace(w.Namespace)
		previous[inventory.IDOf(object)] = object
	}
	result := w.ApplyObjects(w.Objects(next), apply.Options{
		Earlier: func(entry inventory.Entry) []*unstructured.Unstructured {
			return []*unstructured.Unstructured{previous[entry.ID]}
		},
	})
	if !result.Complete() {
		t.Fatal(result.Errors())
	}
	if got := w.data("one")["colour"]; got != "violet" {
		t.Errorf("colour is %s", got)
	}
}
