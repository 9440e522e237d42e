// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert"
)

const themes = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: themes.example.org, namespace: wrong}
spec: {group: example.org, scope: %SCOPE%, names: {kind: Theme, plural: themes}}
---
`

// TestNormalize pins what happens to objects of every format.
func TestNormalize(t *testing.T) {
	theme := "apiVersion: example.org/v1\nkind: Theme\nmetadata: {name: t, namespace: own}"
	for name, c := range map[string]struct{ reason, manifest, want string }{
		"namespace given": {"an object keeps its namespace", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: own}", "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: own}}"},
		"namespace set":   {"one without gets the install namespace", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}", "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns}}"},
		"cluster scope":   {"no namespace where there is none", "apiVersion: v1\nkind: Node\nmetadata: {name: a, namespace: own}", "{apiVersion: v1, kind: Node, metadata: {name: a}}"},
		"own definition":  {"the bundle's definitions count", strings.ReplaceAll(themes, "%SCOPE%", "Cluster") + theme, "{apiVersion: example.org/v1, kind: Theme, metadata: {name: t}}"},
		"own, namespaced": {"either way", strings.ReplaceAll(themes, "%SCOPE%", "Namespaced") + strings.ReplaceAll(theme, ", namespace: own", ""), "{apiVersion: example.org/v1, kind: Theme, metadata: {name: t, namespace: ns}}"},
		"foreign":         {"a namespace that was written is believed", theme, "{apiVersion: example.org/v1, kind: Theme, metadata: {name: t, namespace: own}}"},
		"server fields": {"what a server fills in goes, what people write stays",
			"apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: u, resourceVersion: '1', generation: 2, creationTimestamp: ~, selfLink: s, managedFields: [], ownerReferences: [{name: x}], deletionTimestamp: ~, finalizers: [f], labels: {l: v}, annotations: ~}\nstatus: {phase: Running}",
			"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns, finalizers: [f], labels: {l: v}}}"},
		"templates": {"also inside of workloads",
			"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {jobTemplate: {metadata: {creationTimestamp: ~}, spec: {template: {metadata: {creationTimestamp: ~, labels: {a: b}}}}}}",
			"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: ns}, spec: {jobTemplate: {metadata: {}, spec: {template: {metadata: {labels: {a: b}}}}}}}"},
		"claims": {"and in lists",
			"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {volumeClaimTemplates: [{metadata: {name: c, creationTimestamp: ~}}]}",
			"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: ns}, spec: {volumeClaimTemplates: [{metadata: {name: c}}]}}"},
		"secret": {"stringData wins over data", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: b2xk, b: ''}\nstringData: {a: new}", "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: ns}, data: {a: bmV3, b: ''}}"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := convert.Convert(tree("a.yaml", c.manifest), convert.Options{InstallNamespace: "ns"})
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			var want map[string]any
			if err := yaml.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, result.Objects[len(result.Objects)-1].Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestUndecided: objects of unknown scope are listed, so that a caller that knows the cluster can decide.
func TestUndecided(t *testing.T) {
	result, err := convert.Convert(tree("a.yaml", "apiVersion: example.org/v1\nkind: Theme\nmetadata: {name: t}\n---\n"+configMap), convert.Options{InstallNamespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Undecided) != 1 || result.Undecided[0] != result.Objects[0] {
		t.Errorf("undecided: %v", result.Undecided)
	}
}

// TestRequiredNamespaces: those the objects need, without those the bundle brings.
func TestRequiredNamespaces(t *testing.T) {
	result, err := convert.Convert(load(t, "shop"), convert.Options{InstallNamespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"shop"}, result.RequiredNamespaces); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestM23NoSecretsInProblems: whatever is wrong with a Secret, its values do not show.
func TestM23NoSecretsInProblems(t *testing.T) {
	const canary = "CANARY-77aa"
	const head = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
	for name, c := range map[string]struct{ content, message string }{
		"bad base64":         {head + "data: {k: " + canary + "!}", `data["k"] is not base64`},
		"data of a number":   {head + "data: {k: 77770077}", `data["k"] is not base64`},
		"data is a text":     {head + "data: " + canary, "data is not a mapping"},
		"data is a list":     {head + "data: [" + canary + "]", "data is not a mapping"},
		"stringData number":  {head + "stringData: {k: 77770077}", `stringData["k"] is not a string`},
		"stringData mapping": {head + "stringData: {k: {a: " + canary + "}}", `stringData["k"] is not a string`},
		"label":              {head + "stringData: {k: " + canary + "}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: t, labels: {a: 77770077}}", `metadata.labels["a"] is not a string`},
		"no name":            {"apiVersion: v1\nkind: Secret\nstringData: {k: " + canary + "}", "no metadata.name"},
		"broken YAML":        {head + "stringData:\n  k: " + canary + "\n bad: [" + canary, "not valid YAML"},
		"unclosed text":      {head + "stringData: {k: \"" + canary, "not valid YAML"},
		"broken JSON":        {`{"kind": "Secret", "data": {"k": "` + canary + `"`, "not valid YAML"},
		"duplicate":          {head + "stringData: {k: " + canary + ", k: 1" + canary + "}", `the key "k" appears twice`},
		"twice":              {head + "stringData: {k: " + canary + "}\n---\n" + head, "already in a.yaml (document 1)"},
		"last applied":       {head + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: u, annotations: {kubectl.kubernetes.io/last-applied-configuration: {data: " + canary + "}}}", "is not a string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := convert.Convert(tree("a.yaml", c.content), convert.Options{InstallNamespace: "ns"})
			if err == nil || !strings.Contains(err.Error(), c.message) || !strings.Contains(err.Error(), "a.yaml") {
				t.Fatalf("want %q, got %v", c.message, err)
			}
			if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "77770077") {
				t.Errorf("a value shows: %v", err)
			}
		})
	}
}

// TestDuplicatesAfterNormalization: two spellings of one object are one object.
func TestDuplicatesAfterNormalization(t *testing.T) {
	files := tree("a.yaml", configMap, "b.yaml", strings.ReplaceAll(configMap, "name: a", "name: a, namespace: ns"))
	_, err := convert.Convert(files, convert.Options{InstallNamespace: "ns"})
	if err == nil || !strings.Contains(err.Error(), "b.yaml (document 1): ConfigMap a: the same object is already in a.yaml") {
		t.Errorf("got %v", err)
	}
}

// TestScopeCoversKubernetes: each kind that Kubernetes' client knows and that can be an object has a scope.
func TestScopeCoversKubernetes(t *testing.T) {
	noObjects := map[string]bool{
		"Status": true, "APIGroup": true, "APIVersions": true, "WatchEvent": true, "SerializedReference": true, "RangeAllocation": true,
		"TokenRequest": true, "ImageReview": true, "AdmissionReview": true, "ConversionReview": true, "DeploymentRollback": true, "Scale": true, "PodStatusResult": true,
	}
	old := map[string]bool{"extensions": true}
	for kind := range scheme.Scheme.AllKnownTypes() {
		if strings.HasSuffix(kind.Kind, "List") || strings.HasSuffix(kind.Kind, "Options") || noObjects[kind.Kind] || old[kind.Group] || kind.Version == "__internal" {
			continue
		}
		if convert.ScopeOf(kind.GroupKind()) == convert.Unknown {
			t.Errorf("%s has no scope", kind.GroupKind())
		}
	}
	if got := convert.ScopeOf(schema.GroupKind{Group: "example.org", Kind: "Pod"}); got != convert.Unknown || got.String() != "unknown" {
		t.Errorf("a foreign Pod is %s", got)
	}
}
