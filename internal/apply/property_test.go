// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// forms are objects of several kinds; N is a name, and VALUE one that varies. The part
// between < and > is optional.
var forms = map[schema.GroupVersionResource]string{
	{Version: "v1", Resource: "configmaps"}:                                  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"N"<,"labels":{"l":"VALUE"}>},"data":{"a":"VALUE"<,"b":"VALUE">}}`,
	{Version: "v1", Resource: "secrets"}:                                     `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"N"},"stringData":{"a":"VALUE"<,"b":"VALUE">}}`,
	{Version: "v1", Resource: "services"}:                                    `{"apiVersion":"v1","kind":"Service","metadata":{"name":"N"<,"annotations":{"x":"VALUE"}>},"spec":{"clusterIP":"None","selector":{"app":"VALUE"},"ports":[{"name":"a","port":80}<,{"name":"b","port":81}>]}}`,
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}:   `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"N"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["VALUE"],"verbs":["get"<,"list">]}]}`,
	{Group: "apps", Version: "v1", Resource: "deployments"}:                  `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"N"},"spec":{"replicas":0<,"paused":true>,"selector":{"matchLabels":{"app":"N"}},"template":{"metadata":{"labels":{"app":"N"<,"extra":"VALUE">}},"spec":{"containers":[{"name":"a","image":"example.org/a:VALUE"<,"env":[{"name":"E","value":"VALUE"}]>}<,{"name":"b","image":"example.org/b:VALUE"}>]}}}}`,
	{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}: `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"N"},"spec":{"podSelector":{"matchLabels":{"app":"VALUE"}}<,"policyTypes":["Egress"]>}}`,
}

// randomBundle renders a random subset of objects with random values.
func randomBundle(t *testing.T, source *rand.Rand) []*unstructured.Unstructured {
	t.Helper()
	var resources []schema.GroupVersionResource
	for resource := range forms {
		resources = append(resources, resource)
	}
	slices.SortFunc(resources, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.Resource, b.Resource) })
	var objects []*unstructured.Unstructured
	for _, resource := range resources {
		for name := range 3 {
			if source.IntN(3) == 0 {
				continue
			}
			text := strings.ReplaceAll(strings.ReplaceAll(forms[resource], `"N"`, fmt.Sprintf(`"n%d"`, name)), "VALUE", fmt.Sprintf("v%d", source.IntN(3)))
			for strings.Contains(text, "<") {
				before, rest, _ := strings.Cut(text, "<")
				optional, after, _ := strings.Cut(rest, ">")
				if source.IntN(2) == 0 {
					optional = ""
				}
				text = before + optional + after
			}
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON([]byte(text)); err != nil {
				t.Fatal(err, text)
			}
			objects = append(objects, object)
		}
	}
	return objects
}

// upgrade applies a bundle and prunes what left it.
func (w *world) upgrade(objects []*unstructured.Unstructured) apply.Result {
	w.T.Helper()
	result := w.ApplyObjects(objects, w.Options())
	if !result.Complete() {
		w.T.Fatalf("stopped at %s: %v", result.Stage, result.Errors())
	}
	workspace.Eventually(w.T, "pruning", func() error {
		pruned, err := removal.Prune(w.T.Context(), w.Client, w.Owner, w.Plan(objects).Prune, w.RemovalOptions())
		w.Inventory = w.Inventory.Without(pruned.Gone...)
		if err == nil && !pruned.Complete() {
			err = errors.New("it is not complete")
		}
		return err
	})
	return result
}

// contents are all objects in the namespace of the world, without fields that differ between
// namespaces, or over time.
func (w *world) contents() map[string]string {
	w.T.Helper()
	found := map[string]string{}
	for resource := range forms {
		list, err := w.Dynamic.Resource(resource).Namespace(w.Namespace).List(w.T.Context(), metav1.ListOptions{})
		if err != nil {
			w.T.Fatal(err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if name := object.GetName(); name == "kube-root-ca.crt" || strings.HasPrefix(name, "installer-") {
				continue
			}
			key := resource.Resource + "/" + object.GetName()
			for _, field := range []string{"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation"} {
				unstructured.RemoveNestedField(object.Object, "metadata", field)
			}
			unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
			if len(object.GetAnnotations()) == 0 {
				unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
			}
			delete(object.Object, "status")
			text, err := json.Marshal(object.Object)
			if err != nil {
				w.T.Fatal(err)
			}
			found[key] = strings.ReplaceAll(string(text), w.Namespace, "NS")
		}
	}
	return found
}

// listed is the inventory without parts that differ between namespaces.
func (w *world) listed() map[string]inventory.Hash {
	entries := map[string]inventory.Hash{}
	for _, entry := range w.Inventory.Entries {
		entries[entry.Kind+"/"+entry.Name] = entry.Fields
	}
	return entries
}

// All ways lead to the same result: v1, v2, v3; v1, v3; and a fresh v3 have equal
// objects and inventories. Applying again writes nothing; with a random subset of
// objects deleted and edited, one apply restores everything; and a removal leaves the
// namespace as it was.
func TestPropertyAllWaysLeadToTheSame(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			source := rand.New(rand.NewPCG(seed, 7))
			v1, v2, v3 := randomBundle(t, source), randomBundle(t, source), randomBundle(t, source)
			fresh := newWorld(t, workspace.Everything...)
			before := fresh.contents()
			fresh.upgrade(v3)
			want, wantListed := fresh.contents(), fresh.listed()
			if len(want) != len(v3)+len(before) {
				t.Fatalf("%d objects of %d", len(want), len(v3))
			}
			for name, way := range map[string][][]*unstructured.Unstructured{"v1, v2, v3": {v1, v2, v3}, "v1, v3": {v1, v3}} {
				w := newWorld(t, workspace.Everything...)
				for _, version := range way {
					w.upgrade(version)
				}
				if diff := cmp.Diff(want, w.contents()); diff != "" {
					t.Errorf("%s: other objects (-fresh +got):\n%s", name, diff)
				}
				if diff := cmp.Diff(wantListed, w.listed()); diff != "" {
					t.Errorf("%s: another inventory (-fresh +got):\n%s", name, diff)
				}
			}
			fresh.checkQuiet(v3)
			fresh.damage(source)
			fresh.upgrade(v3)
			if diff := cmp.Diff(want, fresh.contents()); diff != "" {
				t.Errorf("not restored (-want +got):\n%s", diff)
			}
			fresh.checkQuiet(v3)
			fresh.removeAll()
			if diff := cmp.Diff(before, fresh.contents()); diff != "" {
				t.Errorf("left behind (-before +after):\n%s", diff)
			}
		})
	}
}

// F33: with a random subset of objects deleted and edited, and a random one replaced by another
// tool, one apply restores all others and names that one.
func TestPropertyF33TheRestIsRestored(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			source := rand.New(rand.NewPCG(seed, 33))
			objects := randomBundle(t, source)
			w := newWorld(t, workspace.Everything...)
			w.upgrade(objects)
			want := w.contents()
			victim := w.Inventory.Entries[source.IntN(w.Inventory.Len())]
			w.damage(source)
			w.replace(victim.ID)
			input, err := observe.Cluster(t.Context(), w.Client, observe.Request{
				Owner: w.Owner, Desired: objects, Previous: w.Inventory, InstallNamespace: w.Namespace, Keeping: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			p := plan.Make(input)
			if len(p.Violations) > 0 || len(p.LeftOut) != 1 || p.LeftOut[0].Object != victim.ID || p.LeftOut[0].Rule != violation.Collision {
				t.Fatalf("violations %v, left out %v, want %s", p.Violations, p.LeftOut, victim.ID)
			}
			if result, err := apply.Apply(t.Context(), w.Client, p, w.Options()); err != nil || !result.Complete() {
				t.Fatal(err, result.Errors())
			}
			got := w.contents()
			for key, text := range want {
				theirs := strings.HasSuffix(key, "/"+victim.Name) && strings.Contains(text, `"kind":"`+victim.Kind+`"`)
				if same := got[key] == text; same == theirs {
					t.Errorf("%s: as it was: %v, of the other tool: %v", key, same, theirs)
				}
			}
		})
	}
}

// resourceOf returns the client for objects of a kind.
func (w *world) resourceOf(kind string) dynamic.ResourceInterface {
	w.T.Helper()
	for resource, form := range forms {
		if strings.Contains(form, `"kind":"`+kind+`"`) {
			return w.Dynamic.Resource(resource).Namespace(w.Namespace)
		}
	}
	w.T.Fatalf("no objects of kind %s", kind)
	return nil
}

// replace replaces an object by one of another tool.
func (w *world) replace(id inventory.ID) {
	w.T.Helper()
	objects := w.resourceOf(id.Kind)
	if err := objects.Delete(w.T.Context(), id.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.T.Fatal(err)
	}
	for resource, form := range forms {
		if !strings.Contains(form, `"kind":"`+id.Kind+`"`) {
			continue
		}
		text := strings.NewReplacer(`"N"`, strconv.Quote(id.Name), "VALUE", "theirs", "<", "", ">", "").Replace(form)
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			w.T.Fatal(resource, err)
		}
		workspace.Eventually(w.T, "the other tool creates "+id.String(), func() error {
			_, err := objects.Create(w.T.Context(), object, metav1.CreateOptions{FieldManager: "helm"})
			return err
		})
	}
}

// checkQuiet expects a second apply to write nothing.
func (w *world) checkQuiet(objects []*unstructured.Unstructured) {
	w.T.Helper()
	if result := w.upgrade(objects); result.Count(apply.Unchanged) != len(objects) {
		w.T.Errorf("applied again: %v", workspace.Kinds(result))
	}
}

// damage deletes or edits random objects, as a user might.
func (w *world) damage(source *rand.Rand) {
	w.T.Helper()
	for _, entry := range w.Inventory.Entries {
		objects, err := w.resourceOf(entry.Kind), error(nil)
		switch source.IntN(3) {
		case 0:
			err = objects.Delete(w.T.Context(), entry.Name, metav1.DeleteOptions{})
		case 1:
			labels := []byte(`{"metadata":{"labels":{"satchel.dev/deployment":"mine"}}}`)
			_, err = objects.Patch(w.T.Context(), entry.Name, types.MergePatchType, labels, metav1.PatchOptions{FieldManager: "kubectl-edit"})
		}
		if err != nil {
			w.T.Fatal(err)
		}
	}
}
