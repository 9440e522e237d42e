// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

func TestParseConflict(t *testing.T) {
	tests := map[string][2]string{
		`conflict with "kubectl-edit" using v1`:                                          {"kubectl-edit", ""},
		`conflict with "kube-controller-manager" with subresource "scale" using apps/v1`: {"kube-controller-manager", "scale"},
		`conflict with "a \"quoted\" one" using v1 at 2026-01-01T00:00:00Z`:              {`a "quoted" one`, ""},
		`conflict with "with subresource \"scale\"" using v1`:                            {`with subresource "scale"`, ""},
		`something else`: {"something else", ""},
		``:               {"", ""},
	}
	for message, want := range tests {
		manager, subresource := parseConflict(message)
		if manager != want[0] || subresource != want[1] {
			t.Errorf("%q: got %q %q", message, manager, subresource)
		}
	}
}

func TestConflictsOf(t *testing.T) {
	conflict := apierrors.NewApplyConflict([]metav1.StatusCause{
		{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "x" using v1`, Field: ".data.a"},
	}, "Apply failed")
	if got := ConflictsOf(conflict); len(got) != 1 || got[0].manager != "x" || got[0].path != ".data.a" {
		t.Errorf("got %+v", got)
	}
	for name, err := range map[string]error{
		"none": nil, "other": errors.New("x"),
		"version": apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("the object has been modified")),
	} {
		if got := ConflictsOf(err); len(got) > 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// Which conflicting fields are taken, excluded and refused.
func TestF25Judge(t *testing.T) {
	confirmed := inventory.Entry{Rendered: inventory.Hash{1}, Fields: inventory.Hash{2}}
	seen := inventory.Hash{9}
	planned := inventory.Entry{Rendered: inventory.Hash{1}, Begun: true}
	previous := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "b"}}}
	tests := map[string]struct {
		reason                 string
		conflict               Conflict
		action                 plan.Action
		previous               *unstructured.Unstructured
		force, refuse, exclude bool
	}{
		"drift":              {"the content is what was applied: all of it was ours", Conflict{manager: "kubectl-edit", path: ".data.a"}, plan.Action{Seen: seen, Previous: confirmed, Object: plan.Object{Rendered: inventory.Hash{1}}}, nil, true, false, false},
		"never applied":      {"nothing was ever ours", Conflict{manager: "kubectl-edit", path: ".data.a"}, plan.Action{}, nil, false, true, false},
		"upgrade, was ours":  {"the previous content had the field", Conflict{manager: "kubectl-edit", path: ".data.a"}, plan.Action{Seen: seen, Previous: confirmed, Object: plan.Object{Rendered: inventory.Hash{3}}}, previous, true, false, false},
		"upgrade, is theirs": {"the previous content did not have it", Conflict{manager: "kubectl-edit", path: ".data.c"}, plan.Action{Seen: seen, Previous: confirmed, Object: plan.Object{Rendered: inventory.Hash{3}}}, previous, false, true, false},
		"upgrade, unknown":   {"without the previous content nothing is taken", Conflict{manager: "kubectl-edit", path: ".data.a"}, plan.Action{Seen: seen, Previous: confirmed, Object: plan.Object{Rendered: inventory.Hash{3}}}, nil, false, true, false},
		"upgrade, stripped":  {"the API server lost its managers", Conflict{manager: "before-first-apply", path: ".data.a"}, plan.Action{Seen: seen, Previous: confirmed, Object: plan.Object{Rendered: inventory.Hash{3}}}, nil, true, false, false},
		"foreign, stripped":  {"another client created it without server-side apply", Conflict{manager: "before-first-apply", path: ".data.a"}, plan.Action{}, nil, false, true, false},
		"F34, begun":         {"the plan was recorded before the write, which may have happened", Conflict{manager: "kubectl-edit", path: ".data.a"}, plan.Action{Seen: seen, Previous: planned, Object: plan.Object{Rendered: inventory.Hash{1}}}, nil, true, false, false},
		"F34, planned only":  {"an entry without content says nothing of it", Conflict{manager: "kubectl-edit", path: ".data.a"}, plan.Action{Seen: seen, Object: plan.Object{Rendered: inventory.Hash{1}}}, nil, false, true, false},
		"F34, other content": {"what was begun is another content, which is not known", Conflict{manager: "kubectl-edit", path: ".data.a"}, plan.Action{Seen: seen, Previous: planned, Object: plan.Object{Rendered: inventory.Hash{3}}}, nil, false, true, false},
		"F35, created since": {"it did not exist when the plan was made", Conflict{manager: "helm", path: ".data.a"}, plan.Action{Previous: confirmed, Object: plan.Object{Rendered: inventory.Hash{1}}}, previous, false, true, false},
		"orphaned":           {"its annotation lets it be adopted", Conflict{manager: "kubectl", path: ".data.a"}, plan.Action{Seen: seen, Verb: plan.Adopt}, nil, true, false, false},
		"another deployment": {"T13: never taken, whatever else holds", Conflict{manager: "satchel/shop/other", path: ".data.a"}, plan.Action{Seen: seen, Verb: plan.Adopt, Previous: confirmed, Object: plan.Object{Rendered: inventory.Hash{1}}}, previous, false, true, false},
		"hashed manager":     {"T13: a deployment with a long name is one, too", Conflict{manager: "satchel/0123", path: ".data.a"}, plan.Action{Seen: seen, Verb: plan.Adopt}, nil, false, true, false},
		"autoscaler":         {"it took the replicas over", Conflict{manager: "kube-controller-manager", subresource: "scale", path: ".spec.replicas"}, plan.Action{Seen: seen, Previous: confirmed, Object: plan.Object{Rendered: inventory.Hash{1}}}, nil, false, false, true},
		"kubectl scale":      {"a person's scale is drift", Conflict{manager: "kubectl-scale", subresource: "scale", path: ".spec.replicas"}, plan.Action{Seen: seen, Previous: confirmed, Object: plan.Object{Rendered: inventory.Hash{1}}}, nil, true, false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Decide([]Conflict{tc.conflict}, tc.action, []*unstructured.Unstructured{tc.previous})
			if got.Force != tc.force || (len(got.Refused) > 0) != tc.refuse || (len(got.Excluded) > 0) != tc.exclude {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
		})
	}
}

func TestHasPath(t *testing.T) {
	object := &unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(`
metadata: {labels: {app.kubernetes.io/name: web, app: x}, finalizers: [a/b]}
spec:
  ports: [{port: 80, protocol: TCP, name: http}, {port: 443}]
  containers: [{name: 'a]b"c', image: i}]
  list: [x, y]
`), &object.Object)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{
		`.metadata.labels.app.kubernetes.io/name`:   true,
		`.metadata.labels.app`:                      true,
		`.metadata.labels.app.kubernetes.io/other`:  false,
		`.metadata.finalizers[="a/b"]`:              true,
		`.metadata.finalizers[="a/c"]`:              false,
		`.spec.ports[port=80,protocol="TCP"].name`:  true,
		`.spec.ports[port=443,protocol="TCP"].port`: true, // protocol has a default
		`.spec.ports[port=443,protocol="TCP"].name`: false,
		`.spec.ports[port=81,protocol="TCP"]`:       false,
		`.spec.containers[name="a]b\"c"].image`:     true,
		`.spec.containers[name="a]b"].image`:        false,
		`.spec.list[1]`:                             true,
		`.spec.list[2]`:                             false,
		`.spec`:                                     true,
		`.spec.containers[name="unclosed`:           false,
		`spec`:                                      false,
		``:                                          false,
	}
	for path, want := range tests {
		if got := hasPath(object, path); got != want {
			t.Errorf("%s: got %t", path, got)
		}
	}
	if hasPath(nil, ".spec") {
		t.Error("nothing has a path")
	}
}

// FuzzHasPath: paths come from an API server, and must not crash the process.
func FuzzHasPath(f *testing.F) {
	for _, path := range []string{`.spec.a[b="c"].d`, `[=1]`, `.[`, `[a=,b="`, `.metadata.labels.a.b/c`, `[-1]`} {
		f.Add(path)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"a": []any{map[string]any{"b": "c", "d": nil}, "x", int64(1)}, "": map[string]any{"": ""}},
	}}
	f.Fuzz(func(_ *testing.T, path string) {
		hasPath(object, path)
		parseConflict(path)
	})
}

func TestDescribeNamesManagersOnce(t *testing.T) {
	words := Describe([]Conflict{
		{manager: "b", path: ".z"}, {manager: "b", path: ".a"}, {manager: "satchel/shop/other", path: ".c"},
	})
	if !strings.HasPrefix(words, `"b" manages .a, .z; BundleDeployment shop/other manages .c`) {
		t.Errorf("got %q", words)
	}
}

func TestRenameManagers(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource}
	}
	names := func(entries []metav1.ManagedFieldsEntry) []string {
		var list []string
		for _, entry := range entries {
			list = append(list, entry.Manager+" "+string(entry.Operation))
		}
		return list
	}
	others := []metav1.ManagedFieldsEntry{entry("x", "Update", ""), entry("from", "Update", ""), entry("from", "Apply", "status")}
	got := names(RenameManager(append(slices.Clone(others), entry("from", "Apply", "")), "from", "to"))
	if want := []string{"x Update", "from Update", "from Apply", "to Apply"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	got = names(RenameManager([]metav1.ManagedFieldsEntry{entry("from", "Apply", ""), entry("to", "Apply", "")}, "from", "to"))
	if want := []string{"to Apply"}; !slices.Equal(got, want) {
		t.Errorf("both hold some: got %v, want %v", got, want)
	}
	if got := RenameManager(nil, "from", "to"); len(got) != 1 {
		t.Errorf("without entries: got %v, want the API server's word for none", got)
	}
}
