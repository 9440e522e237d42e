// SPDX-License-Identifier: Apache-2.0

package ignore_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
	"github.com/satchel-dev/satchel/internal/pattern"
)

const ignorable = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {tier: front}
  annotations: {example.org/note: a, tilde~key: b}
spec:
  replicas: 3
  template:
    spec:
      containers:
      - {name: one, image: a}
      - {name: two, image: b}
      - {name: three, image: c}
`

func read(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestWithout(t *testing.T) {
	cases := map[string]struct {
		reason string
		paths  []string
		target ignore.Selector
		edit   func(string) string // what is left
	}{
		"a field":     {"the plain case", []string{"/spec/replicas"}, ignore.Selector{}, replace("  replicas: 3\n", "")},
		"escaped":     {"names of annotations have slashes and tildes", []string{"/metadata/annotations/example.org~1note", "/metadata/annotations/tilde~0key"}, ignore.Selector{}, replace("  annotations: {example.org/note: a, tilde~key: b}\n", "")},
		"in a list":   {"only the field of that item goes", []string{"/spec/template/spec/containers/1/image"}, ignore.Selector{}, replace("{name: two, image: b}", "{name: two}")},
		"items":       {"the second pointer means the list as it was", []string{"/spec/template/spec/containers/0", "/spec/template/spec/containers/1/image"}, ignore.Selector{}, replace("      - {name: one, image: a}\n      - {name: two, image: b}\n", "      - {name: two}\n")},
		"nowhere":     {"what is not there is not taken", []string{"/spec/nothing", "/spec/replicas/deeper", "/spec/template/spec/containers/9", "/spec/template/spec/containers/x"}, ignore.Selector{}, same},
		"selected":    {"all parts match as a whole", []string{"/spec/replicas"}, ignore.Selector{Group: "apps", Version: "v.*", Kind: "Deploy.*|Other", Namespace: "shop", Name: "w.b", LabelSelector: "tier=front,!other", AnnotationSelector: "example.org/note"}, replace("  replicas: 3\n", "")},
		"other kind":  {"a part of a name is no match", []string{"/spec/replicas"}, ignore.Selector{Kind: "Deploy"}, same},
		"other label": {"selectors work as in kubectl", []string{"/spec/replicas"}, ignore.Selector{LabelSelector: "tier=back"}, same},
		"other note":  {"and for annotations", []string{"/spec/replicas"}, ignore.Selector{AnnotationSelector: "example.org/note=b"}, same},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rules, err := ignore.New([]ignore.Rule{{Paths: tc.paths, Target: tc.target}})
			if err != nil {
				t.Fatal(err)
			}
			object := read(t, ignorable)
			pointers, err := rules.Of(object)
			if err != nil {
				t.Fatal(err)
			}
			left, taken := ignore.Without(object, pointers)
			if diff := cmp.Diff(read(t, tc.edit(ignorable)).Object, left.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if taken != (tc.edit(ignorable) != ignorable) {
				t.Errorf("taken is %t", taken)
			}
			if diff := cmp.Diff(read(t, ignorable).Object, object.Object); diff != "" {
				t.Errorf("the object itself was changed:\n%s", diff)
			}
		})
	}
}

func same(manifest string) string { return manifest }

func replace(what, by string) func(string) string {
	return func(manifest string) string { return strings.Replace(manifest, what, by, 1) }
}

func TestIgnoreNamesWhatIsWrong(t *testing.T) {
	for want, rule := range map[string]ignore.Rule{
		"ignore[0].paths":                     {Paths: []string{"spec"}},
		"ignore[0].target.kind":               {Target: ignore.Selector{Kind: "("}},
		"ignore[0].target.labelSelector":      {Target: ignore.Selector{LabelSelector: "a=b=c"}},
		"ignore[0].target.annotationSelector": {Target: ignore.Selector{AnnotationSelector: "!"}},
	} {
		if _, err := ignore.New([]ignore.Rule{rule}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
}

// TestM28IgnoreCosts: patterns are refused before they are compiled, and rules that match too much while they match.
func TestM28IgnoreCosts(t *testing.T) {
	counted := func(times int) string {
		return "(" + strings.Repeat("[a-z0-9]?", 8) + "){" + strconv.Itoa(times) + "}Z"
	}
	_, err := ignore.New([]ignore.Rule{{Paths: []string{"/data/a"}}, {Paths: []string{"/data/a"}, Target: ignore.Selector{Name: counted(1000)}}})
	var costly *pattern.Error
	if !errors.As(err, &costly) || !strings.Contains(err.Error(), "ignore[1].target.name") {
		t.Errorf("got %v, want it to name the second rule", err)
	}
	rules, err := ignore.New([]ignore.Rule{{Paths: []string{"/data/a"}, Target: ignore.Selector{Kind: "Config.*", Name: counted(100)}}})
	if err != nil {
		t.Fatal(err)
	}
	object := read(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+strings.Repeat("a", 253)+"}}")
	for range 25_000 {
		if _, err = rules.Of(object); err != nil {
			break
		}
	}
	if !errors.As(err, &costly) || !strings.Contains(err.Error(), "ignore[0].target.name") {
		t.Errorf("got %v, want 25,000 objects to be too much for the rule", err)
	}
}
