// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// What is stored in an old version is written in the new one while the webhook
// still answers, before anything else of the operator goes; then the CRD converts
// nothing any more, no value is lost, and the cluster works without the operator.
func TestRemovalMigratesResources(t *testing.T) {
	w := newWorld(t, everything...)
	w.grantCluster("installer", everything...)
	c := newConverter(t)
	c.old(w, 3)
	w.whileOperatorLives(c)
	notes := strings.Join(w.removeAll(), "; ")
	c.dead.Store(true)
	if !strings.Contains(notes, "stored as v1 now") || strings.Contains(notes, "lost") {
		t.Errorf("notes %q", notes)
	}
	for _, item := range w.unharmed(3) {
		if bulk, found, _ := unstructured.NestedInt64(item.Object, "spec", "bulk"); !found || bulk == 0 {
			t.Errorf("%s lost its value: %v", item.GetName(), item.Object["spec"])
		}
	}
	if stored := w.stored(); len(stored) != 1 || stored[0] != "v1" {
		t.Errorf("stored versions %v", stored)
	}
	crd, err := w.definition()
	if err != nil {
		t.Fatal(err)
	}
	if _, found := crd.GetAnnotations()["satchel.dev/migrating"]; found {
		t.Error("the mark of the migration is left")
	}
	calls := c.calls.Load()
	w.namespaceGoes()
	if c.calls.Load() != calls {
		t.Error("the webhook was called after the removal")
	}
}

// whileOperatorLives wants the ConfigMap that stands for the operator's workload to
// be there until the CRD has let go of the webhook.
func (w *world) whileOperatorLives(c *converter) {
	w.t.Helper()
	c.die(w)
	removed := w.remove()
	if len(removed.Waiting) != 1 || w.data("operator") == nil {
		w.t.Fatalf("the operator went before its CRD: %+v", removed)
	}
	c.revive()
}

// A webhook that is dead already cannot convert: after some attempts the CRD lets
// go of it all the same, and the notes say what that means.
func TestRemovalWithDeadConversion(t *testing.T) {
	w := newWorld(t, everything...)
	w.grantCluster("installer", everything...)
	c := newConverter(t)
	c.old(w, 2)
	c.die(w)
	notes := strings.Join(w.removeAll(), "; ")
	for _, words := range []string{"widgets." + w.namespace, "could not be written as v1", "stored as v1alpha1 are served as they are", "lost when"} {
		if !strings.Contains(notes, words) {
			t.Errorf("notes %q do not say %q", notes, words)
		}
	}
	w.unharmed(2)
	w.namespaceGoes()
}

// An account that may not touch the resources says so at once.
func TestRemovalMayNotMigrate(t *testing.T) {
	w := newWorld(t, everything...)
	w.grantCluster("installer", definers)
	c := newConverter(t)
	c.old(w, 1)
	notes := strings.Join(w.removeAll(), "; ")
	if !strings.Contains(notes, "could not be written as v1") || !strings.Contains(notes, "forbidden") {
		t.Errorf("notes %q", notes)
	}
	w.unharmed(1)
}

// Without the right to the status of CRDs everything is written anew all the same;
// and where no resource is left, none has to be.
func TestRemovalWithoutRightToStatus(t *testing.T) {
	for name, count := range map[string]int{"with resources": 1, "without": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everything...)
			w.grantCluster("installer",
				rbacv1.PolicyRule{APIGroups: []string{w.widget().Group}, Resources: []string{"widgets"}, Verbs: []string{"list", "patch"}},
				rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"*"}})
			c := newConverter(t)
			c.old(w, count)
			notes := strings.Join(w.removeAll(), "; ")
			if !strings.Contains(notes, "stored as v1 now") || !strings.Contains(notes, "customresourcedefinitions/status") {
				t.Errorf("notes %q", notes)
			}
			for _, item := range w.unharmed(count) {
				if _, found, _ := unstructured.NestedInt64(item.Object, "spec", "bulk"); !found {
					t.Errorf("%s lost its value", item.GetName())
				}
			}
		})
	}
}

// Many resources take several calls; each goes on where the last one ended.
func TestMigrationGoesOn(t *testing.T) {
	w := newWorld(t, everything...)
	w.grantCluster("installer", everything...)
	c := newConverter(t)
	c.old(w, 1)
	const many = 1100
	for i := range many {
		widget := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": w.widget().GroupVersion().String(), "kind": "Widget", "metadata": map[string]any{"name": fmt.Sprintf("more%d", i)},
		}}
		if _, err := w.dynamic.Resource(w.widget()).Namespace(w.namespace).Create(t.Context(), widget, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	removed := w.remove()
	if len(removed.Waiting) != 1 || !strings.Contains(removed.Waiting[0].Reason, "written as v1") || w.data("operator") == nil {
		t.Fatalf("after one call: %+v", removed)
	}
	before := w.client.Requests()
	w.removeAll()
	if rest := w.client.Requests() - before; rest > many/2 {
		t.Errorf("%d requests for what was left of %d resources", rest, many)
	}
	w.unharmed(many + 1)
}

// A CRD that leaves the bundle is let go of in the same way, before what else is
// pruned.
func TestPruneMigratesResources(t *testing.T) {
	w := newWorld(t, everything...)
	w.grantCluster("installer", everything...)
	c := newConverter(t)
	c.old(w, 2)
	c.die(w)
	if pruned := w.prune(oneMap); len(pruned.Waiting) != 1 || w.data("operator") == nil {
		t.Fatalf("with the webhook busy: %+v", pruned)
	}
	c.revive()
	w.mustApply(oneMap)
	if pruned := w.prune(oneMap); !pruned.Complete() || !strings.Contains(strings.Join(pruned.Notes, "; "), "stored as v1 now") {
		t.Errorf("got %+v", pruned)
	}
	c.dead.Store(true)
	for _, item := range w.unharmed(2) {
		if _, found, _ := unstructured.NestedInt64(item.Object, "spec", "bulk"); !found {
			t.Errorf("%s lost its value", item.GetName())
		}
	}
}

// A revision that keeps the CRD and gives its conversion up migrates first, too.
func TestUpgradeMigratesResources(t *testing.T) {
	for name, dead := range map[string]bool{"alive": false, "dead": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everything...)
			w.grantCluster("installer", everything...)
			c := newConverter(t)
			bundle := c.old(w, 2)
			start, end := strings.Index(bundle, "  conversion:"), strings.Index(bundle, "  versions:")
			upgraded := bundle[:start] + bundle[end:]
			if p, _ := w.safePlan(w.objects(upgraded), plan.Enforce); len(p.Violations) != 1 || !strings.Contains(p.Violations[0].Message, "stored in v1alpha1") {
				t.Errorf("under Enforce: %v", p.Violations)
			}
			c.die(w)
			if result := w.apply(upgraded); result.Complete() || !strings.Contains(result.Pending, "written as v1") {
				t.Fatalf("with the webhook busy: %+v", result)
			}
			if !dead {
				c.revive()
			}
			var result apply.Result
			eventually(t, "the upgrade", func() error {
				if result = w.apply(upgraded); !result.Complete() {
					return fmtError(result.Pending)
				}
				return nil
			})
			c.dead.Store(true)
			if lost := strings.Join(result.Warnings, "; "); strings.Contains(lost, "could not be written as v1") != dead {
				t.Errorf("warnings %q", lost)
			}
			for _, item := range w.unharmed(2) {
				if _, found, _ := unstructured.NestedInt64(item.Object, "spec", "bulk"); found == dead {
					t.Errorf("%s: %v", item.GetName(), item.Object["spec"])
				}
			}
			crd, err := w.definition()
			if err != nil {
				t.Fatal(err)
			}
			if _, found := crd.GetAnnotations()["satchel.dev/migrating"]; found {
				t.Error("the mark of the migration is left")
			}
			if p := w.plan(w.objects(upgraded)); !p.Quiet() {
				t.Error(p.Summary())
			}
			again := w.apply(bundle)
			if !again.Complete() {
				t.Errorf("converting again: pending %q, errors %v", again.Pending, again.Errors())
			}
		})
	}
}

// A dead webhook keeps even the resources that the bundle brings itself from being
// looked at; the removal does not wait for it for ever.
func TestRemovalOfOwnResourcesWithDeadConversion(t *testing.T) {
	w := newWorld(t, everything...)
	w.grantCluster("installer", everything...)
	c := newConverter(t)
	w.mustApply(c.bundle(w, "v1alpha1"))
	own := fmt.Sprintf("\n---\napiVersion: %s/v1alpha1\nkind: Widget\nmetadata: {name: own}\n", w.widget().Group)
	w.mustApply(c.bundle(w, "v1alpha1") + own)
	w.mustApply(c.bundle(w, "v1") + own)
	c.die(w)
	var notes []string
	failures := 0
	eventually(t, "the removal", func() error {
		removed, err := apply.Remove(t.Context(), w.client, w.owner, w.inventory, apply.Options{})
		w.inventory = removed.Inventory
		notes = append(notes, removed.Notes...)
		if err == nil && !removed.Done() {
			failures++
			err = fmtError(strings.Join(remainingWords(removed), "; "))
		}
		return err
	})
	if text := strings.Join(notes, "; "); !strings.Contains(text, "could not be written as v1") || failures < 2 {
		t.Errorf("after %d failures: notes %q", failures, text)
	}
	w.unharmed(0)
}
