// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/completion"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

var completing = completion.Settings{Owner: owner, InstallNamespace: "shop", Hasher: inventory.NewHasher(nil)}

func TestComplete(t *testing.T) {
	tests := map[string]struct {
		reason     string
		object     string
		namespaced bool
		want       string
	}{
		"namespace and labels": {
			reason:     "an object that carries no namespace goes to the install namespace",
			object:     `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {a: b}}}`,
			namespaced: true,
			want:       `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, labels: {a: b, satchel.dev/deployment: web, satchel.dev/namespace: shop}}}`,
		},
		"own namespace": {
			reason:     "a namespace that is given stays",
			object:     `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: other}}`,
			namespaced: true,
			want:       `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: other, labels: {satchel.dev/deployment: web, satchel.dev/namespace: shop}}}`,
		},
		"cluster": {
			reason: "a kind of the cluster has no namespace, whatever the manifest says",
			object: `{apiVersion: v1, kind: Namespace, metadata: {name: one, namespace: other}}`,
			want:   `{apiVersion: v1, kind: Namespace, metadata: {name: one, labels: {satchel.dev/deployment: web, satchel.dev/namespace: shop}}}`,
		},
		"server fields": {
			reason:     "what only an API server writes is nothing to apply",
			object:     `{apiVersion: v1, kind: Pod, metadata: {name: one, uid: x, resourceVersion: "1", generation: 2, creationTimestamp: null, managedFields: [{}], selfLink: x}, spec: {template: {metadata: {creationTimestamp: null}}}, status: {phase: x}}`,
			namespaced: true,
			want:       `{apiVersion: v1, kind: Pod, metadata: {name: one, namespace: shop, labels: {satchel.dev/deployment: web, satchel.dev/namespace: shop}}, spec: {template: {metadata: {}}}}`,
		},
		"string data": {
			reason:     "the API server records only data as ours",
			object:     `{apiVersion: v1, kind: Secret, metadata: {name: one}, data: {a: b2xk, b: c3RheXM=}, stringData: {a: new}}`,
			namespaced: true,
			want:       `{apiVersion: v1, kind: Secret, metadata: {name: one, namespace: shop, labels: {satchel.dev/deployment: web, satchel.dev/namespace: shop}}, data: {a: bmV3, b: c3RheXM=}}`,
		},
		"forged labels": {
			reason:     "the bundle does not choose its owner",
			object:     `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {satchel.dev/deployment: else, satchel.dev/namespace: else}}}`,
			namespaced: true,
			want:       `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, labels: {satchel.dev/deployment: web, satchel.dev/namespace: shop}}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			given := parse(t, tc.object)
			before := given.DeepCopy()
			got, err := completing.Complete(given, plan.Kind{Namespaced: tc.namespaced})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, tc.want).Object, got.Desired.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before.Object, given.Object); diff != "" {
				t.Errorf("the given object was changed:\n%s", diff)
			}
			if got.ID != inventory.IDOf(got.Desired) || got.Rendered.IsZero() {
				t.Errorf("identity %s, hash %s", got.ID, got.Rendered)
			}
		})
	}
}

// A Secret that cannot be completed is named with the key, without the value.
func TestM23CompleteSecret(t *testing.T) {
	for _, secret := range []string{
		`{apiVersion: v1, kind: Secret, metadata: {name: one}, stringData: {token: {deep: CANARY}}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: one}, stringData: CANARY}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: one}, stringData: {token: 12345}}`,
	} {
		_, err := completing.Complete(parse(t, secret), plan.Kind{Namespaced: true})
		if err == nil || strings.Contains(err.Error(), "CANARY") || strings.Contains(err.Error(), "12345") || !strings.Contains(err.Error(), "Secret shop/one") {
			t.Errorf("got %v", err)
		}
	}
}

func TestDefinitions(t *testing.T) {
	crd := parse(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [{name: v1, served: true}, {name: v1alpha1, served: false}, nonsense]
`)
	broken := parse(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, spec: 7}`)
	found := crds.Definitions([]*unstructured.Unstructured{broken, crd})
	definition := found[schema.GroupKind{Group: "example.org", Kind: "Widget"}]
	kind, served := plan.KindOf(definition, "v1")
	want := plan.Kind{Resource: schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}, Namespaced: true, Definition: "widgets.example.org"}
	if diff := cmp.Diff(want, kind); diff != "" || !served {
		t.Errorf("served %t (-want +got):\n%s", served, diff)
	}
	if _, served := plan.KindOf(definition, "v1alpha1"); served {
		t.Error("a version that is not served is offered")
	}
}

// A CRD with a name that an API server would refuse is not read as one: its parts
// become those of request paths.
func TestT7DefinitionsOfOtherPlaces(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, name, group, plural, version string
		good                                 bool
	}{
		"good":            {"the usual", "widgets.example.org", "example.org", "widgets", "v1", true},
		"version":         {"a dash is allowed", "widgets.example.org", "example.org", "widgets", "v1-beta", true},
		"plural path":     {"a proxy into a pod", "pods/evil/proxy.example.org", "example.org", "pods/evil/proxy", "v1", false},
		"plural up":       {"another group", "...example.org", "example.org", "..", "v1", false},
		"no plural":       {"the group's own path", ".example.org", "example.org", "", "v1", false},
		"group path":      {"another group", "widgets.x.y/../apps", "x.y/../apps", "widgets", "v1", false},
		"group plain":     {"no CRD may serve the groups of Kubernetes", "deployments.apps", "apps", "deployments", "v1", false},
		"no group":        {"nor the core", "pods.", "", "pods", "v1", false},
		"upper case":      {"no DNS name", "widgets.Example.org", "Example.org", "widgets", "v1", false},
		"version path":    {"another version", "widgets.example.org", "example.org", "widgets", "../v1", false},
		"version up":      {"up", "widgets.example.org", "example.org", "widgets", "..", false},
		"version missing": {"none", "widgets.example.org", "example.org", "widgets", "", false},
		"other name":      {"the CRD of another resource", "widgets.example.org", "example.org", "gadgets", "v1", false},
	} {
		t.Run(name, func(t *testing.T) {
			crd := parse(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {scope: Namespaced, names: {kind: Widget}}}`)
			crd.SetName(tc.name)
			spec, _ := crd.Object["spec"].(map[string]any)
			spec["group"], spec["versions"] = tc.group, []any{map[string]any{"name": tc.version, "served": true}}
			names, _ := spec["names"].(map[string]any)
			names["plural"] = tc.plural
			if found := crds.Definitions([]*unstructured.Unstructured{crd}); (len(found) == 1) != tc.good {
				t.Errorf("%s: got %v", tc.reason, found)
			}
		})
	}
}

func TestLiveOf(t *testing.T) {
	controller := true
	object := &metav1.ObjectMeta{
		UID: "u", ResourceVersion: "7", Generation: 2, Finalizers: []string{"f"},
		DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)},
		Labels:            owner.Labels(),
		Annotations:       map[string]string{inventory.AnnotationOrphaned: "", "meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
		OwnerReferences:   []metav1.OwnerReference{{Kind: "Shop", Name: "main", Controller: &controller}},
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "z", Operation: "Update"}, {Manager: "a", Operation: "Update"}, {Manager: "z", Operation: "Apply"},
			{Manager: owner.Manager(), Operation: "Apply", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{}}`)}},
		},
	}
	want := ownership.Live{
		UID: "u", ResourceVersion: "7", Owner: owner, Orphaned: true, Deleting: true, Finalizers: []string{"f"},
		Managers: []string{"a", "z"}, Controller: "Shop main", Tool: "Helm release shop/web",
		Fields: inventory.HashFields(object.ManagedFields, owner.Manager()), Seen: inventory.HashSeen(object),
	}
	got := ownership.LiveOf(object, owner)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.Fields.IsZero() || got.Seen.IsZero() {
		t.Error("a hash is missing")
	}
}
