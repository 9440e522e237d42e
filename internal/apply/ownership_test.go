// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/tests/workspace"
)

const oneMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {colour: blue}
`

// second is another deployment beside the first, with the same account.
func (w *world) second() *world {
	other := *w.Workspace
	other.Owner = inventory.Owner{Namespace: w.Namespace, Name: "other"}
	other.Inventory = inventory.Inventory{}
	return &world{Workspace: &other}
}

func (w *world) refusedWith(objects string, rule violation.Rule, words ...string) {
	w.T.Helper()
	p := w.Plan(w.Objects(objects))
	for _, violation := range p.Violations {
		if violation.Rule != rule {
			continue
		}
		for _, word := range words {
			if !strings.Contains(violation.String(), word) {
				w.T.Errorf("%q does not say %q", violation, word)
			}
		}
		return
	}
	w.T.Errorf("got violations %v, want %s", p.Violations, rule)
}

// An object has one deployment: another one is refused, with the owner's name.
func TestT13TwoDeployments(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(oneMap)
	other := w.second()
	other.refusedWith(oneMap, violation.Collision, "ConfigMap "+w.Namespace+"/one", "BundleDeployment "+w.Namespace+"/app")
}

// Two deployments that both found no object race for it: the API server lets
// one of them have it.
func TestT13Race(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	other := w.second()
	late := other.Plan(other.Objects(oneMap))
	w.MustApply(oneMap)
	result, err := apply.Apply(t.Context(), other.Client, late, apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	errs := result.Errors()
	if result.Count(apply.Conflict) != 1 || !strings.Contains(errs[0].Error(), "BundleDeployment "+w.Namespace+"/app") {
		t.Errorf("got %v, want a conflict that names the owner", result.Outcomes)
	}
}

// An object without an owner does not become ours because it carries our labels, or because the
// plan was recorded before another client created it.
func TestT13Forged(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	create := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","labels":{"satchel.dev/deployment":"app","satchel.dev/namespace":"` + w.Namespace + `"}},"data":{"colour":"blue"}}`
	w.Patch(types.ApplyPatchType, "one", create, "attacker")
	w.refusedWith(oneMap, violation.Collision, "never applied it", inventory.AnnotationOrphaned)

	w.Inventory = w.Plan(w.Objects(oneMap)).Inventory
	if w.Inventory.Len() != 1 {
		t.Fatal("the plan does not list the object")
	}
	w.refusedWith(oneMap, violation.Collision, "never applied it")
	pruned := w.prune(workspace.TwoMaps[strings.Index(workspace.TwoMaps, "---\n")+4:])
	if pruned.Deleted != 0 || w.data("one") == nil {
		t.Errorf("an object that was never ours was pruned: %+v", pruned)
	}
}

// An apply that was killed between the write and its record is continued.
func TestF4KilledBeforeRecord(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	p := w.Plan(w.Objects(workspace.TwoMaps))
	if _, err := apply.Apply(t.Context(), w.Client, p, apply.Options{}); err != nil {
		t.Fatal(err)
	}
	w.Inventory = p.Inventory // stored before the apply; its result was lost
	w.MustApply(workspace.TwoMaps)
	w.Inventory = inventory.Inventory{} // even that was lost
	w.MustApply(workspace.TwoMaps)
	if p := w.Plan(w.Objects(workspace.TwoMaps)); !p.Quiet() {
		t.Error(p.Summary())
	}
}

// Objects of an apply that died are pruned when the next revision does not contain them.
func TestF4NoOrphanOfADeadApply(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	p := w.Plan(w.Objects(workspace.TwoMaps))
	if _, err := apply.Apply(t.Context(), w.Client, p, apply.Options{}); err != nil {
		t.Fatal(err)
	}
	w.Inventory = p.Inventory
	pruned := w.prune(oneMap)
	if pruned.Deleted != 1 || len(pruned.Denied) > 0 {
		t.Errorf("got %+v, want object two deleted", pruned)
	}
	_, err := w.Admin.CoreV1().ConfigMaps(w.Namespace).Get(t.Context(), "two", metav1.GetOptions{})
	if err == nil {
		t.Error("object two is an orphan")
	}
}

// prune plans the manifests and prunes what they lack, without applying them.
func (w *world) prune(manifests string) removal.Pruned {
	w.T.Helper()
	p := w.Plan(w.Objects(manifests))
	pruned, err := removal.Prune(w.T.Context(), w.Client, w.Owner, p.Prune, w.RemovalOptions())
	if err != nil {
		w.T.Fatal(err)
	}
	w.Inventory = w.Inventory.Without(pruned.Gone...)
	return pruned
}

// Pruning spares objects that another deployment really owns, that changed their owner
// after the plan, and that another client recreated.
func TestT13PruneSparesOthers(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	p := w.Plan(w.Objects(oneMap))
	if p.Deletions() != 1 {
		t.Fatalf("plan: %s, want one deletion", p.Summary())
	}
	w.Patch(types.MergePatchType, "two", `{"metadata":{"labels":{"satchel.dev/deployment":"other"}}}`, "theirs")
	pruned, err := removal.Prune(t.Context(), w.Client, w.Owner, p.Prune, removal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if pruned.Deleted != 0 || len(pruned.Notes) != 1 {
		t.Errorf("got %+v, want the object left alone and a note", pruned)
	}
	if w.data("two")["colour"] != "red" {
		t.Error("the object of another deployment is gone")
	}
}
