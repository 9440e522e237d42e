// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// Resources that are stored in an old version are rewritten in the new one while the webhook
// still answers, before other objects of the operator are deleted; then the CRD has no conversion
// any more, no value is lost, and the cluster works without the operator.
func TestRemovalMigratesResources(t *testing.T) {
	t.Parallel() // waits for a namespace to go, which begins after 5 s
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	c := newConverter(t)
	c.old(w, 3)
	w.whileOperatorLives(c)
	notes := strings.Join(w.removeAll(), "; ")
	c.dead.Store(true)
	if !strings.Contains(notes, "stored as v1 now") || strings.Contains(notes, "lost") {
		t.Errorf("notes %q", notes)
	}
	w.kept(3)
	if stored := w.stored(); len(stored) != 1 || stored[0] != "v1" {
		t.Errorf("stored versions %v", stored)
	}
	w.namespaceGoes() // the dead webhook is not needed; a watch from before may still call it in vain
}

// whileOperatorLives checks that the ConfigMap that stands for the operator's workload
// exists until the CRD has no conversion webhook any more.
func (w *world) whileOperatorLives(c *converter) {
	w.T.Helper()
	c.die(w)
	removed := w.remove()
	if len(removed.Waiting) != 1 || w.data("operator") == nil {
		w.T.Fatalf("the operator went before its CRD: %+v", removed)
	}
	c.revive()
}

// A webhook that is dead already cannot convert: the removal waits some minutes for it,
// and says how many. Then it removes the webhook from the CRD all the same, and the
// notes name the consequence.
func TestRemovalWithDeadConversion(t *testing.T) {
	t.Parallel() // waits for a namespace to go, which begins after 5 s
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	c := newConverter(t)
	c.old(w, 2)
	c.die(w)
	before, err := w.definition()
	if err != nil {
		t.Fatal(err)
	}
	until := w.waitsUntil()
	w.Ahead = 9 * time.Minute
	if later := w.waitsUntil(); later != until || time.Until(until) > 10*time.Minute || time.Until(until) < 9*time.Minute {
		t.Errorf("waits until %s, and after 9 minutes until %s", until, later)
	}
	w.Restart()
	if later := w.waitsUntil(); later.Sub(until) < 8*time.Minute {
		t.Errorf("another process, which saw no failure yet, waits until %s, like this one until %s", later, until)
	}
	if after, err := w.definition(); err != nil || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the definition was written meanwhile: %v", err)
	}
	w.Ahead += 11 * time.Minute
	notes := strings.Join(w.removeAll(), "; ")
	for _, words := range []string{"widgets." + w.Namespace, "could not be written as v1", "stored as v1alpha1 are served as they are", "lost when"} {
		if !strings.Contains(notes, words) {
			t.Errorf("notes %q do not say %q", notes, words)
		}
	}
	w.unharmed(2)
	w.namespaceGoes()
}

// waitsUntil expects a removal to wait for the webhook, and returns until when.
func (w *world) waitsUntil() time.Time {
	w.T.Helper()
	removed := w.remove()
	if len(removed.Waiting) != 1 || w.data("operator") == nil {
		w.T.Fatalf("want it to wait for the webhook: %+v", removed)
	}
	_, words, _ := strings.Cut(removed.Waiting[0].Reason, "waits until ")
	stamp, _, _ := strings.Cut(words, " ")
	until, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		w.T.Fatalf("%q: %v", removed.Waiting[0].Reason, err)
	}
	return until
}

// Annotations on the CRD do not affect what is written, or how long it takes.
func TestMigrationBelievesNoAnnotation(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	c := newConverter(t)
	c.old(w, 2)
	c.die(w)
	w.patchDefinition(types.MergePatchType, `{"metadata":{"annotations":{"satchel.dev/migrating":`+
		`"{\"storage\":\"v1\",\"last\":\"zzz\",\"failing\":\"2020-01-01T00:00:00Z\",\"tried\":\"2099-01-01T00:00:00Z\"}"}}}`)
	w.waitsUntil()
	c.revive()
	w.removeAll()
	w.kept(2)
}

// Without permission for the resources the removal reports that at once.
func TestRemovalMayNotMigrate(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	c := newConverter(t)
	c.old(w, 1)
	notes := strings.Join(w.removeAll(), "; ")
	if !strings.Contains(notes, "could not be written as v1") || !strings.Contains(notes, "forbidden") {
		t.Errorf("notes %q", notes)
	}
	w.unharmed(1)
}

// Without permission for the status of CRDs all resources are rewritten all the same;
// and where no resource is left, none is written.
func TestRemovalWithoutRightToStatus(t *testing.T) {
	for name, count := range map[string]int{"with resources": 1, "without": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, workspace.Everything...)
			w.GrantCluster("installer",
				rbacv1.PolicyRule{APIGroups: []string{w.widget().Group}, Resources: []string{"widgets"}, Verbs: []string{"list", "patch"}},
				rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"*"}})
			c := newConverter(t)
			c.old(w, count)
			notes := strings.Join(w.removeAll(), "; ")
			if !strings.Contains(notes, "stored as v1 now") || !strings.Contains(notes, "customresourcedefinitions/status") {
				t.Errorf("notes %q", notes)
			}
			w.kept(count)
		})
	}
}

// A CRD that leaves the bundle is migrated in the same way, before other objects are
// pruned.
func TestPruneMigratesResources(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	c := newConverter(t)
	c.old(w, 2)
	c.die(w)
	if pruned := w.prune(oneMap); len(pruned.Waiting) != 1 || w.data("operator") == nil {
		t.Fatalf("with the webhook busy: %+v", pruned)
	}
	c.revive()
	w.MustApply(oneMap)
	if pruned := w.prune(oneMap); !pruned.Complete() || !strings.Contains(strings.Join(pruned.Notes, "; "), "stored as v1 now") {
		t.Errorf("got %+v", pruned)
	}
	c.dead.Store(true)
	w.kept(2)
}

// A revision that keeps the CRD and removes its conversion migrates first, too, and
// waits for that without a limit: nothing is changed until then.
func TestUpgradeMigratesResources(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	c := newConverter(t)
	bundle := c.old(w, 2)
	upgraded := unconverting(bundle)
	if p, _ := w.safePlan(w.Objects(upgraded), plan.Enforce); len(p.Violations) != 1 || !strings.Contains(p.Violations[0].Message, "stored in v1alpha1") {
		t.Errorf("under Enforce: %v", p.Violations)
	}
	c.die(w)
	w.holds(upgraded, "its resources could not be written as v1 (conversion webhook for")
	w.Ahead = 24 * time.Hour
	w.holds(upgraded, "its resources could not be written as v1 (conversion webhook for")
	w.Ahead += 30 * time.Minute
	if until := w.waitsUntil(); time.Until(until) < w.Ahead+9*time.Minute {
		t.Errorf("a removal is as impatient as if it had failed itself: it waits until %s", until)
	}
	c.revive()
	w.MustApply(upgraded)
	c.dead.Store(true)
	w.kept(2)
	if p := w.Plan(w.Objects(upgraded)); !p.Quiet() {
		t.Error(p.Summary())
	}
	w.MustApply(bundle)
}

// holds expects an update to wait for the user, and to report why and what to do.
func (w *world) holds(manifests string, why string) {
	w.T.Helper()
	result := w.Apply(manifests)
	if len(result.Errors()) > 0 || result.Complete() {
		w.T.Fatalf("want the update held: %+v", result)
	}
	for _, words := range []string{"widgets." + w.Namespace, "is not updated", why, "of those stored as v1alpha1", "set", "spec.conversion"} {
		if !strings.Contains(result.Pending, words) {
			w.T.Errorf("%q does not say %q", result.Pending, words)
		}
	}
	if crd, err := w.definition(); err != nil || !strings.Contains(fmt.Sprint(crd.Object["spec"]), "Webhook") {
		w.T.Errorf("the conversion is gone: %v", err)
	}
}

func unconverting(bundle string) string {
	start, end := strings.Index(bundle, "  conversion:"), strings.Index(bundle, "  versions:")
	return bundle[:start] + bundle[end:]
}

// A user who may write the CRD can confirm that no data of value is lost, by making the
// change that the update waits with.
func TestUpgradeThatUsersConfirm(t *testing.T) {
	tests := map[string]struct {
		reason  string
		prepare func(*world, *converter) (upgraded string)
		why     string
	}{
		"webhook dead": {"it will not be repaired", func(w *world, c *converter) string {
			bundle := c.old(w, 2)
			c.die(w)
			return unconverting(bundle)
		}, "conversion webhook for"},
		"not allowed": {"the ServiceAccount may not list", func(w *world, c *converter) string {
			return unconverting(c.old(w, 2))
		}, "cannot list resource"},
		"other storage": {"nothing can be written as v1 before the update", func(w *world, c *converter) string {
			c.old(w, 2)
			w.MustApply(c.bundle(w, "v1alpha1"))
			return unconverting(c.bundle(w, "v1"))
		}, "apply a revision first that stores v1 and converts"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, workspace.Everything...)
			if name == "not allowed" {
				w.GrantCluster("installer", definers)
			} else {
				w.GrantCluster("installer", workspace.Everything...)
			}
			upgraded := tt.prepare(w, newConverter(t))
			w.holds(upgraded, tt.why)
			w.patchDefinition(types.MergePatchType, `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
			w.MustApply(upgraded)
			w.unharmed(2)
		})
	}
}

// A dead webhook makes even the resources of the bundle
// unreadable; the removal does not wait for it for ever.
func TestRemovalOfOwnResourcesWithDeadConversion(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	c := newConverter(t)
	w.MustApply(c.bundle(w, "v1alpha1"))
	own := fmt.Sprintf("\n---\napiVersion: %s/v1alpha1\nkind: Widget\nmetadata: {name: own}\n", w.widget().Group)
	w.MustApply(c.bundle(w, "v1alpha1") + own)
	w.MustApply(c.bundle(w, "v1") + own)
	c.die(w)
	var notes []string
	failures := 0
	workspace.Eventually(t, "the removal", func() error {
		removed, err := removal.Remove(t.Context(), w.Client, w.Owner, w.Inventory, w.RemovalOptions())
		w.Inventory = removed.Inventory
		notes = append(notes, removed.Notes...)
		if err == nil && !removed.Done() {
			failures++
			w.Ahead += 6 * time.Minute
			err = fmtError(strings.Join(remainingWords(removed), "; "))
		}
		return err
	})
	if text := strings.Join(notes, "; "); !strings.Contains(text, "could not be written as v1") || failures == 0 {
		t.Errorf("after %d failures: notes %q", failures, text)
	}
	w.unharmed(0)
}
