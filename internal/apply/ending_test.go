// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// end removes the installed objects with the pruning of a spec, and collects the notes.
func (w *world) end(pruning pruning.Policy) []string {
	w.T.Helper()
	var notes []string
	o := w.RemovalOptions()
	o.Pruning = pruning
	workspace.Eventually(w.T, "the removal", func() error {
		removed, err := removal.Remove(w.T.Context(), w.Client, w.Owner, w.Inventory, o)
		if err != nil {
			return err
		}
		w.Inventory = removed.Inventory
		notes = append(notes, removed.Notes...)
		if !removed.Done() {
			return fmtError(strings.Join(remainingWords(removed), "; "))
		}
		return nil
	})
	return notes
}

// A CRD that may be deleted is deleted after the resources of the bundle, and
// stays, if the ServiceAccount may list them, while a user has one.
func TestDeleteDefinition(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	for _, users := range []bool{false, true} {
		w.MustApply(w.widgets())
		if users {
			user := &unstructured.Unstructured{Object: map[string]any{"apiVersion": w.widget().GroupVersion().String(), "kind": "Widget", "metadata": map[string]any{"name": "users"}}}
			if _, err := w.Dynamic.Resource(w.widget()).Namespace(w.Namespace).Create(t.Context(), user, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		notes := w.end(pruning.Policy{Definitions: true})
		crd, err := w.definition()
		if !users && (!apierrors.IsNotFound(err) || len(notes) > 0) {
			t.Fatalf("it is not used: %v, %v", notes, err)
		}
		if users && (err != nil || crd.GetAnnotations()[inventory.AnnotationOrphaned] == "" || len(notes) != 1 || !strings.Contains(notes[0], w.Namespace+"/users is left")) {
			t.Fatalf("a user has one: %v, %v", notes, err)
		}
	}
}

// An account that may not list the resources of a kind does not delete its CRD.
func TestDeleteDefinitionUnseen(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	w.MustApply(w.widgets())
	p := w.planPruning(w.widgets(), pruning.Policy{Definitions: true})
	p.Stages[0].Actions[0].Verb = plan.Update // so that everything is asked for
	permissions, err := preflight.Check(t.Context(), w.Client, p)
	if err != nil || len(permissions.Violations) != 1 || !strings.Contains(permissions.Violations[0].String(), "list widgets") {
		t.Errorf("violations %v, %v", permissions.Violations, err)
	}
	notes := w.end(pruning.Policy{Definitions: true})
	if _, err := w.definition(); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "may not list widgets") {
		t.Errorf("%v, %v", notes, err)
	}
}

// Orphaned objects stay unchanged, and the next deployment that contains them adopts them.
func TestOrphanEverything(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	bundle := w.Objects(w.widgets())
	w.ApplyObjects(bundle, w.Options())
	w.end(pruning.Policy{Orphan: true, Definitions: true})
	for _, object := range bundle {
		resource := configMaps
		switch object.GetKind() {
		case "Widget":
			resource = w.widget()
		case "CustomResourceDefinition":
			continue
		}
		live, err := w.Dynamic.Resource(resource).Namespace(w.Namespace).Get(t.Context(), object.GetName(), metav1.GetOptions{})
		if err != nil || live.GetAnnotations()[inventory.AnnotationOrphaned] == "" || live.GetLabels()[inventory.LabelDeployment] != "" || live.GetDeletionTimestamp() != nil {
			t.Errorf("%s: %v, %v", object.GetName(), live, err)
		}
	}
	other := w.second()
	result := other.ApplyObjects(bundle, other.Options())
	if !result.Complete() || result.Count(apply.Adopted) != len(bundle) {
		t.Errorf("adopted: %v", workspace.Kinds(result))
	}
	if p := other.Plan(bundle); !p.Quiet() {
		t.Error(p.Summary())
	}
}

// A single object is kept by its annotation, whichever client set it.
func TestKeptByAnnotation(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(strings.Replace(workspace.TwoMaps, "{name: two}", `{name: two, annotations: {satchel.dev/deletion-policy: Orphan}}`, 1))
	notes := w.end(pruning.Policy{})
	_, err := w.Admin.CoreV1().ConfigMaps(w.Namespace).Get(t.Context(), "one", metav1.GetOptions{})
	if w.data("two") == nil || !apierrors.IsNotFound(err) || len(notes) != 1 || !strings.Contains(notes[0], "is kept") {
		t.Errorf("notes %v, %v", notes, err)
	}
}
