// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// ignoring ignores fields of all objects.
func (w *world) ignoring(paths ...string) ignore.Rules {
	w.T.Helper()
	ignore, err := ignore.New([]ignore.Rule{{Paths: paths}})
	if err != nil {
		w.T.Fatal(err)
	}
	return ignore
}

// planIgnoring is plan with ignored fields.
func (w *world) planIgnoring(objects []*unstructured.Unstructured, ignore ignore.Rules) plan.Plan {
	w.T.Helper()
	in, err := observe.Cluster(w.T.Context(), w.Client, observe.Request{
		Owner: w.Owner, Desired: objects, Previous: w.Inventory, InstallNamespace: w.Namespace, Ignore: ignore,
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return plan.Make(in)
}

func (w *world) applyIgnoring(manifests string, ignore ignore.Rules) apply.Result {
	w.T.Helper()
	p := w.planIgnoring(w.Objects(manifests), ignore)
	check, err := dryrun.Run(w.T.Context(), w.Client, p, dryrun.Options{})
	if err != nil || len(check.Failed) > 0 {
		w.T.Fatalf("dry run: %v %v", err, check.Failed)
	}
	result, err := apply.Apply(w.T.Context(), w.Client, p, w.Options())
	if err != nil || !result.Complete() {
		w.T.Fatalf("%v %v", err, result.Errors())
	}
	w.Inventory = result.Inventory
	if p := w.planIgnoring(w.Objects(manifests), ignore); !p.Quiet() {
		w.T.Fatalf("after it was applied: %s", p.Summary())
	}
	return result
}

// An ignored field is set on creation, and other managers own it afterwards: whatever they do
// with it, and whatever the bundle contains later.
func TestF25IgnoredFieldsAreOthers(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	ignore := w.ignoring("/data/colour")
	w.applyIgnoring(workspace.TwoMaps, ignore)
	if diff := cmp.Diff(map[string]string{"colour": "blue", "size": "big"}, w.data("one")); diff != "" {
		t.Fatalf("on creation (-want +got):\n%s", diff)
	}
	steps := []struct{ reason, patch, manifests, colour, size string }{
		{"our own later value does not replace the first one", "", strings.ReplaceAll(workspace.TwoMaps, "blue", "violet"), "blue", "big"},
		{"a value of another client survives", `{"data":{"colour":"green"}}`, workspace.TwoMaps, "green", "big"},
		{"also when the rest changes", "", strings.ReplaceAll(workspace.TwoMaps, "big", "small"), "green", "small"},
		{"also when the rest drifts", `{"data":{"size":"huge"}}`, strings.ReplaceAll(workspace.TwoMaps, "big", "small"), "green", "small"},
		{"that it was removed survives as well", `{"data":{"colour":null}}`, workspace.TwoMaps, "", "big"},
		{"also when all managed fields are stripped", `{"metadata":{"managedFields":[{}]},"data":{"colour":"red"}}`, workspace.TwoMaps, "red", "big"},
	}
	for _, step := range steps {
		if step.patch != "" {
			w.Patch(types.MergePatchType, "one", step.patch, "another-client")
		}
		w.applyIgnoring(step.manifests, ignore)
		if got := w.data("one"); got["colour"] != step.colour || got["size"] != step.size {
			t.Errorf("%s: got %v", step.reason, got)
		}
	}
}

// A new rule releases a field without removing it, also in a list and
// where the API server requires it; after the rule is removed, the field is taken back.
func TestF25IgnoreRulesComeAndGo(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(scaled)
	ignore := w.ignoring("/spec/replicas", "/spec/template/spec/containers/0/image")
	w.applyIgnoring(scaled, ignore)
	image := func() string {
		containers, _, _ := unstructured.NestedSlice(w.live("web").Object, "spec", "template", "spec", "containers")
		text, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image") //nolint:forcetypeassert // it is a container
		return text
	}
	if w.Replicas() != 1 || image() != "registry.example/web:v1" {
		t.Fatalf("fields were removed: %d replicas, image %s", w.Replicas(), image())
	}
	w.Scale("3", "kubectl-scale")
	patch := []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example/web:theirs"}]`)
	w.patchDeployment(types.JSONPatchType, patch)
	w.applyIgnoring(scaled, ignore)
	if w.Replicas() != 3 || image() != "registry.example/web:theirs" {
		t.Errorf("%d replicas, image %s: what is theirs was reverted", w.Replicas(), image())
	}
	w.applyIgnoring(strings.ReplaceAll(scaled, "web:v1", "web:v2"), ignore)
	if image() != "registry.example/web:theirs" {
		t.Errorf("an upgrade reverted what is theirs: %s", image())
	}
}

// flux-f34: a field that leaves the bundle in the revision that comes with a rule to ignore it keeps its value, also in a list, in a Secret
// and in a custom resource; a field that no rule names goes.
func TestF48IgnoredFieldLeavesTheBundle(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: one}\nstringData: {a: CANARY-ignored, b: two"
	for name, tc := range map[string]struct {
		before, after, path string
		stays, goes         string
	}{
		"replicas":        {strings.Replace(aWorkload("Deployment", three), "web:v1\"", "web:v1\", args: [a]", 1), aWorkload("Deployment", ""), "/spec/replicas", `"replicas":3`, "args"},
		"in a list":       {strings.Replace(aWorkload("Deployment", three), "web:v1\"", "web:v1\", args: [a]", 1), aWorkload("Deployment", three), "/spec/template/spec/containers/0/args", `"args":["a"]`, "nothing"},
		"in a Secret":     {secret + ", c: three}\n", strings.Replace(secret, "a: CANARY-ignored, ", "", 1) + "}\n", "/data/a", `"a":"Q0FOQVJZ`, `"c":`},
		"custom resource": {aFleet(", size: 3"), aFleet(""), "/spec/size", `"size":3`, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workspace.Everything...)
			w.scalerKinds()
			w.MustApply(tc.before)
			ignore := w.ignoring(tc.path)
			action := w.planIgnoring(w.Objects(tc.after), ignore).Stages[0].Actions[0]
			if kept := action.Handover.Kept; len(kept) != 1 || strings.Contains(kept[0].String(), "Q0FOQVJZ") {
				t.Errorf("the plan keeps %v", kept)
			}
			w.applyIgnoring(tc.after, ignore)
			live, err := w.Dynamic.Resource(action.Resource).Namespace(w.Namespace).Get(t.Context(), action.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			live.SetManagedFields(nil)
			text, err := live.MarshalJSON()
			if err != nil || !strings.Contains(string(text), tc.stays) || strings.Contains(string(text), tc.goes) {
				t.Errorf("got %s, %v, want %s and not %s", text, err, tc.stays, tc.goes)
			}
		})
	}
}

func (w *world) patchDeployment(kind types.PatchType, patch []byte) {
	w.T.Helper()
	if _, err := w.Admin.AppsV1().Deployments(w.Namespace).Patch(w.T.Context(), "web", kind, patch, metav1.PatchOptions{FieldManager: "tests"}); err != nil {
		w.T.Fatal(err)
	}
}

// Each differing field is named, with the manager that changed it.
func TestExplain(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(scaled + "---" + workspace.TwoMaps)
	web, one := w.desired(scaled)[0], w.desired(workspace.TwoMaps)[0]
	steps := []struct {
		reason string
		change func()
		object plan.Object
		want   string
	}{
		{"nothing", func() {}, one, ""},
		{"a value", func() { w.Patch(types.MergePatchType, "one", `{"data":{"colour":"green"}}`, "kubectl-edit") }, one, `: .data.colour changed by "kubectl-edit"`},
		{"and another", func() { w.Patch(types.MergePatchType, "one", `{"data":{"size":"small"}}`, "other") }, one, `: .data.colour, .data.size changed by "kubectl-edit", "other"`},
		{"removed", func() {
			w.MustApply(scaled + "---" + workspace.TwoMaps)
			w.Patch(types.MergePatchType, "one", `{"data":{"size":null}}`, "other")
		}, one, `: .data.size removed`},
		{"stripped", func() { w.Patch(types.MergePatchType, "one", `{"metadata":{"managedFields":[{}]}}`, "other") }, one, `: its managed fields were removed`},
		{"gone", func() { w.delete("one") }, one, ` was deleted`},
		{"scaled", func() { w.Scale("2", "kubectl-scale") }, web, `: .spec.replicas changed by "kubectl-scale"`},
		{"in a list", func() {
			w.MustApply(scaled + "---" + workspace.TwoMaps)
			w.patchDeployment(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"x"}]`))
		}, web, `: .spec.template.spec.containers[name="web"].image changed by "tests"`},
	}
	for _, step := range steps {
		step.change()
		difference, err := fieldmanager.Explain(t.Context(), w.Client, w.Owner, step.object)
		if err != nil {
			t.Fatal(err)
		}
		if step.want == "" {
			if len(difference.Fields) > 0 {
				t.Errorf("%s: %v", step.reason, difference)
			}
			continue
		}
		if want := step.object.ID.String() + step.want; difference.String() != want {
			t.Errorf("%s: got %q, want %q", step.reason, difference, want)
		}
	}
}

// desired are the objects of manifests as they are applied.
func (w *world) desired(manifests string) []plan.Object {
	w.T.Helper()
	return w.Plan(w.Objects(manifests)).Objects()
}

func (w *world) delete(name string) {
	w.T.Helper()
	if err := w.Admin.CoreV1().ConfigMaps(w.Namespace).Delete(w.T.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.T.Fatal(err)
	}
}

func (w *world) live(name string) *unstructured.Unstructured {
	w.T.Helper()
	found, err := w.Dynamic.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).
		Namespace(w.Namespace).Get(w.T.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return found
}
