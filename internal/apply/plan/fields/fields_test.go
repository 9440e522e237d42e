// SPDX-License-Identifier: Apache-2.0

package fields_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	result := &unstructured.Unstructured{}
	if err := result.UnmarshalJSON(encoded); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return result
}

func lines(t *testing.T, changes []fields.Change) []string {
	t.Helper()
	var list []string
	for _, c := range changes {
		before, err := json.Marshal(c.Before)
		if err != nil {
			t.Fatal(err)
		}
		after, err := json.Marshal(c.After)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s: %s -> %s", c.Path, before, after))
	}
	return list
}

const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func TestDiff(t *testing.T) {
	list := func(items string) string { return head + "list: [" + items + "]" }
	for name, tc := range map[string]struct {
		reason        string
		before, after string
		want          []string
	}{
		"same":    {"nothing differs", head + "data: {a: b}", head + "data: {a: b}", nil},
		"scalar":  {"the values are given", head + "data: {a: b}", head + "data: {a: c}", []string{`.data.a: "b" -> "c"`}},
		"added":   {"as a whole", head, head + "data: {a: b}", []string{`.data: null -> {"a":"b"}`}},
		"removed": {"as a whole", head + "data: {a: b, c: d}", head + "data: {a: b}", []string{`.data.c: "d" -> null`}},
		"empty":   {"null and empty mean nothing", head + "data: {}\nspec: null\nlist: []", head, nil},
		"numbers": {"they are compared by value", head + "n: 1", head + "n: 1.0", nil},
		"types":   {"a text is no number", head + `v: "1"`, head + "v: 1", []string{`.v: "1" -> 1`}},
		"quoted":  {"a key that is no word is quoted", head + `data: {"tls.crt": a}`, head + `data: {"tls.crt": b}`, []string{`.data["tls.crt"]: "a" -> "b"`}},
		"server": {
			"what only an API server writes does not count",
			"apiVersion: v1\nkind: A\nmetadata: {name: a, uid: x, resourceVersion: '1', generation: 1, managedFields: [], creationTimestamp: x}\nstatus: {a: b}",
			"apiVersion: v1\nkind: A\nmetadata: {name: a}", nil,
		},
		"inserted": {
			"items are compared by their names",
			list("{name: a, v: 1}, {name: b, v: 1}"), list("{name: c, v: 1}, {name: a, v: 1}, {name: b, v: 2}"),
			[]string{`.list[name="c"]: null -> {"name":"c","v":1}`, `.list[name="b"].v: 1 -> 2`},
		},
		"order": {
			"the order of what stays may matter", list("{name: a}, {name: b}"), list("{name: b}, {name: a}"),
			[]string{`.list: ["name=\"a\"","name=\"b\""] -> ["name=\"b\"","name=\"a\""]`},
		},
		"ports": {
			"a protocol that is left out is TCP", list("{containerPort: 80}, {containerPort: 80, protocol: UDP}"),
			list("{containerPort: 80, protocol: TCP}, {containerPort: 81, protocol: UDP}"),
			[]string{
				`.list[containerPort=80,protocol="UDP"]: {"containerPort":80,"protocol":"UDP"} -> null`,
				`.list[containerPort=80,protocol="TCP"].protocol: null -> "TCP"`,
				`.list[containerPort=81,protocol="UDP"]: null -> {"containerPort":81,"protocol":"UDP"}`,
			},
		},
		"twice": {
			"a key that is there twice tells nothing apart", list("{name: a, v: 1}, {name: a, v: 2}"), list("{name: a, v: 1}, {name: a, v: 3}"),
			[]string{".list[1].v: 2 -> 3"},
		},
		"loose": {
			"items without keys that are on both sides do not differ", list("{v: [1]}, {v: [2]}, {v: [3]}"), list("{v: [1]}, {v: [3]}"),
			[]string{`.list[1]: {"v":[2]} -> null`},
		},
		"texts": {"a list of texts is shown as a whole", list("a, b"), list("a, c"), []string{`.list: ["a","b"] -> ["a","c"]`}},
		"none before": {"all is new", "", "apiVersion: v1\nkind: A\nmetadata: {name: a}", []string{
			`.: null -> {"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`,
		}},
	} {
		changes, more := fields.Diff(object(t, tc.before), object(t, tc.after))
		if diff := cmp.Diff(tc.want, lines(t, changes)); diff != "" || more != 0 {
			t.Errorf("%s (%s): %d more, (-want +got)\n%s", name, tc.reason, more, diff)
		}
	}
}

func TestWanted(t *testing.T) {
	live := head + "spec: {a: 1, byDefault: 2, list: [{name: a, byDefault: 3}, {name: z}]}\nother: 1"
	wanted := head + "spec: {a: 2, list: [{name: a}, {name: b}]}"
	changes, _ := fields.Wanted(object(t, live), object(t, wanted))
	want := []string{".spec.a: 1 -> 2", `.spec.list[name="b"]: null -> {"name":"b"}`}
	if diff := cmp.Diff(want, lines(t, changes)); diff != "" {
		t.Errorf("what others fill in counts: (-want +got)\n%s", diff)
	}
}

func TestPointers(t *testing.T) {
	desired := object(t, head+"list: [{name: a, v: 2}]\nloose: [1, 2]\ndata: {x/y~z: b, same: a}").Object
	changes, _ := fields.Diff(
		object(t, head+"list: [{name: a, v: 1}, {name: gone}]\nloose: [1, 3]\ndata: {x/y~z: a, other: c}"),
		object(t, head+"list: [{name: new}, {name: a, v: 2}]\nloose: [1, 2]\ndata: {x/y~z: b}"))
	var got []string
	for _, c := range changes {
		pointer, ok := c.Pointer(desired)
		got = append(got, fmt.Sprintf("%s %v", pointer, ok))
	}
	want := []string{" false", "/data/x~1y~0z true", " false", " false", "/list/0/v true", "/loose true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("they lead to what is desired: (-want +got)\n%s\n%v", diff, changes)
	}
}

// Wherever a Secret value is, the result never contains it, and reports that it differs.
func TestSecretsAreHidden(t *testing.T) {
	const before, after = "c2VjcmV0", "aGlkZGVu"
	secret := func(value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {note: " + value + ", kubectl.kubernetes.io/last-applied-configuration: " + value +
			"}}\ndata: {password: " + value + ", same: x}\nstringData: {plain: " + value + ", odd: [" + value + ", {deep: " + value + "}]}\n"
	}
	nested := func(value string) string {
		return "apiVersion: example.org/v1\nkind: Work\nmetadata: {name: a, annotations: {example.org/last-applied: " + value + "}}\n" +
			"spec: {manifests: [{apiVersion: v1, kind: Secret, data: {password: " + value + "}}]}\n"
	}
	for name, write := range map[string]func(string) string{"secret": secret, "nested": nested} {
		was, will := object(t, write(before)), object(t, write(after))
		for what, pair := range map[string][2]*unstructured.Unstructured{"changed": {was, will}, "added": {nil, will}, "removed": {was, nil}} {
			changes, _ := fields.Diff(pair[0], pair[1])
			if len(changes) == 0 {
				t.Errorf("%s, %s: nothing differs", name, what)
			}
			from, to := fields.Sides(pair[0], pair[1])
			said := fmt.Sprintf("%v %+v %#v %v %v %#v", changes, changes, changes, from, to, to) + strings.Join(lines(t, changes), "\n")
			if strings.Contains(said, before) || strings.Contains(said, after) || strings.Contains(said, "hidden\"") && strings.Contains(said, "deep: hidden") {
				t.Errorf("%s, %s: a value is given away: %s", name, what, said)
			}
			if what == "changed" && !strings.Contains(fmt.Sprint(to), fields.Other) {
				t.Errorf("%s: the difference is not visible: %v", name, to)
			}
		}
		if changes, _ := fields.Diff(was, was.DeepCopy()); len(changes) > 0 {
			t.Errorf("%s: the same object differs: %v", name, changes)
		}
	}
}

func TestChangesAreBounded(t *testing.T) {
	var before, after strings.Builder
	for i := range 3 * fields.Most {
		fmt.Fprintf(&before, "  k%d: a\n", i)
		fmt.Fprintf(&after, "  k%d: b\n", i)
	}
	changes, more := fields.Diff(object(t, head+"data:\n"+before.String()), object(t, head+"data:\n"+after.String()))
	if len(changes) != fields.Most || more != 2*fields.Most {
		t.Errorf("%d changes and %d more", len(changes), more)
	}
}

// M38: a long key is in the path of each value below it, and paths are bounded.
func TestM38Paths(t *testing.T) {
	values := func(of int) map[string]any {
		below := map[string]any{}
		for i := range 1500 {
			below["k"+strconv.Itoa(i)] = int64(of)
		}
		var nested any = below
		for range 40 {
			nested = map[string]any{strings.Repeat("n", 400): nested}
		}
		return map[string]any{strings.Repeat("é", 500_000): below, strings.Repeat("x", 500_000): []any{below}, "deep": nested}
	}
	changes, more := fields.Values(values(1), values(2))
	size := 0
	for _, change := range changes {
		size += len(change.Path)
	}
	if len(changes)+more != 4500 || size > 8<<20 {
		t.Errorf("%d changes and %d more, %d bytes of paths", len(changes), more, size)
	}
}
