// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
)

func parsed(t *testing.T, manifests ...string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, text := range manifests {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

func contentOf(t *testing.T, namespace string, objects ...*unstructured.Unstructured) string {
	t.Helper()
	digest, err := digest.Content(objects, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

const (
	settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {color: green}}"
	password = "{apiVersion: v1, kind: Secret, metadata: {name: password, namespace: shop}, data: {a: Zm9v}, stringData: {b: bar}}"
	web      = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, template: {spec: {containers: [{name: web, image: web:1}]}}}}"
)

// The digest is part of the API: users commit it. Another one for the same content
// breaks every approval that is stored in Git.
func TestContentIsStable(t *testing.T) {
	got := contentOf(t, "shop", parsed(t, settings, password, web)...)
	if want := "sha256:a8f247c2fbdc4d29163371f90d5cc3a2ef57119c74eaefb425f117afbc0d11b6"; got != want {
		t.Errorf("the digest of the same content is %s, and was %s", got, want)
	}
}

func TestContentWithoutOrder(t *testing.T) {
	objects := parsed(t, settings, password, web)
	want := contentOf(t, "shop", objects...)
	for range 5 {
		rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		if got := contentOf(t, "shop", objects...); got != want {
			t.Errorf("the order of the objects moves the digest: %s, %s", got, want)
		}
	}
}

func TestContentOfSecrets(t *testing.T) {
	secret := func(data string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {kubectl.kubernetes.io/last-applied-configuration: '" + data + "', note: x}}, data: " + data + "}"
	}
	cases := map[string]struct {
		reason string
		one    string
		other  string
		same   bool
	}{
		"value":        {"a digest is no help in guessing a password", secret("{a: Zm9v}"), secret("{a: YmFy}"), true},
		"no value":     {"that there is none is a value", secret("{a: Zm9v}"), secret("{a: null}"), true},
		"another key":  {"which keys there are is content", secret("{a: Zm9v}"), secret("{b: Zm9v}"), false},
		"no keys":      {"none at all, too", secret("{a: Zm9v}"), secret("{}"), false},
		"other fields": {"only the values are secret", secret("{}"), "{apiVersion: v1, kind: Secret, metadata: {name: s}, type: Opaque, data: {}}", false},
		"config maps":  {"what is no Secret counts with its values", settings, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {color: blue}}", false},
		"their kind": {"a kind of the same name is no Secret", "{apiVersion: example.org/v1, kind: Secret, metadata: {name: s}, data: {a: b}}",
			"{apiVersion: example.org/v1, kind: Secret, metadata: {name: s}, data: {a: c}}", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			one, other := contentOf(t, "shop", parsed(t, tc.one)...), contentOf(t, "shop", parsed(t, tc.other)...)
			if (one == other) != tc.same {
				t.Errorf("%s: %s and %s", tc.reason, one, other)
			}
		})
	}
}

// The digest does not change the objects: they are applied afterwards.
func TestContentLeavesTheObjects(t *testing.T) {
	objects := parsed(t, password, "{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}}")
	kept := []*unstructured.Unstructured{objects[0].DeepCopy(), objects[1].DeepCopy()}
	contentOf(t, "shop", objects...)
	for i := range objects {
		if !slices.Equal([]string{text(t, objects[i])}, []string{text(t, kept[i])}) {
			t.Errorf("%s became %s", text(t, kept[i]), text(t, objects[i]))
		}
	}
}

func text(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	data, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestContentOfTheNamespace(t *testing.T) {
	objects := parsed(t, web)
	if contentOf(t, "shop", objects...) == contentOf(t, "store", objects...) {
		t.Error("objects that name no namespace go elsewhere, and the digest stays")
	}
}

// Each single change outside of Secret values changes the digest: a field that
// is added, removed, or has another value, anywhere, and an added or removed object.
func TestContentNoticesEveryChange(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 1))
	for range 300 {
		objects := parsed(t, settings, web, "{apiVersion: v1, kind: Service, metadata: {name: web, labels: {a: b}}, spec: {ports: [{port: 80}, {port: 443}]}}")
		seen := map[string]bool{contentOf(t, "shop", objects...): true}
		for range 5 {
			mutate(random, objects[random.IntN(len(objects))].Object)
			digest := contentOf(t, "shop", objects...)
			if seen[digest] {
				t.Fatalf("a change of %v left the digest %s", objects, digest)
			}
			seen[digest] = true
		}
		if digest := contentOf(t, "shop", objects[1:]...); seen[digest] {
			t.Fatalf("without an object the digest stays %s", digest)
		}
	}
}

var fresh int

// mutate changes one field in a value to a value that was never there.
func mutate(random *rand.Rand, value map[string]any) {
	fresh++
	keys := slices.Sorted(maps.Keys(value))
	key := keys[random.IntN(len(keys))]
	switch inner := value[key].(type) {
	case map[string]any:
		if len(inner) > 0 && random.IntN(4) > 0 {
			mutate(random, inner)
			return
		}
	case []any:
		if entry, ok := inner[random.IntN(len(inner))].(map[string]any); ok && random.IntN(4) > 0 {
			mutate(random, entry)
			return
		}
		value[key] = append(inner, "more-"+strconv.Itoa(fresh))
		return
	}
	value[key+strconv.Itoa(fresh)] = "new"
}
