// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "regenerate manifests.yaml")

const manifestsHeader = `# SPDX-License-Identifier: Apache-2.0
#
# config/default without its definitions, which config/embed.go embeds. Generated: make generate.
`

// kustomized renders a kustomization of config/.
func kustomized(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // kustomizations say themselves
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), "../../config/"+folder)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, parsed...)
	}
	return objects
}

// TestManifestsAreCurrent renders config/default and compares it with the embedded manifests.
func TestManifestsAreCurrent(t *testing.T) {
	want := kustomized(t, "default")
	var text bytes.Buffer
	text.WriteString(manifestsHeader)
	for _, o := range want {
		if o.GetKind() == "CustomResourceDefinition" {
			continue
		}
		document, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n")
		text.Write(document)
	}
	if *update {
		if err := os.WriteFile("manifests.yaml", text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		manifests = text.Bytes()
	}
	if diff := cmp.Diff(text.String(), string(manifests)); diff != "" {
		t.Errorf("internal/install/manifests.yaml is not current: run make generate\n-want +got:\n%s", diff)
	}
	got, err := Manifests(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(want), contents(got)); diff != "" {
		t.Errorf("the zero options do not mean config/default: -want +got:\n%s", diff)
	}
	if a, b := order(want), order(got); !cmp.Equal(a, b) {
		t.Errorf("the order is another one: %s", cmp.Diff(a, b))
	}
}

// contents are objects by kind and name.
func contents(objects []*unstructured.Unstructured) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, o := range objects {
		all[idOf(o)] = o.Object
	}
	return all
}

func idOf(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// order is the kinds in their order, each once in a row.
func order(objects []*unstructured.Unstructured) []string {
	var kinds []string
	for _, o := range objects {
		if len(kinds) == 0 || kinds[len(kinds)-1] != o.GetKind() {
			kinds = append(kinds, o.GetKind())
		}
	}
	return kinds
}

// TestOptionsAreOverlays checks that options give the same result as the overlays of config/.
func TestOptionsAreOverlays(t *testing.T) {
	for folder, o := range map[string]Options{
		"overlays/authenticated-artifacts":  {AuthenticatedArtifacts: true},
		"overlays/namespaced-impersonation": {TenantNamespaces: []string{"samples"}},
	} {
		got, err := Manifests(o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(contents(kustomized(t, folder)), contents(got)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", folder, diff)
		}
	}
}

// path reads a field of the objects of a kind.
func path(objects []*unstructured.Unstructured, kind string, fields ...string) []any {
	var found []any
	for _, o := range objects {
		if o.GetKind() == kind {
			value, _, _ := unstructured.NestedFieldNoCopy(o.Object, fields...)
			found = append(found, value)
		}
	}
	return found
}

func TestOptions(t *testing.T) {
	all := func(n int, value any) []any {
		var values []any
		for range n {
			values = append(values, value)
		}
		return values
	}
	for name, tc := range map[string]struct {
		reason  string
		options Options
		kind    string
		fields  []string
		want    []any
	}{
		"replicas":    {"more than one lead in turn", Options{Replicas: 3, EphemeralStorage: true}, "Deployment", []string{"spec", "replicas"}, all(2, int64(3))},
		"rolling":     {"what shares no volume needs no pause", Options{Replicas: 3, EphemeralStorage: true}, "Deployment", []string{"spec", "strategy"}, all(2, nil)},
		"one":         {"the volume has to be released first", Options{EphemeralStorage: true}, "Deployment", []string{"spec", "strategy", "type"}, all(2, "Recreate")},
		"no claims":   {"nothing is claimed", Options{EphemeralStorage: true}, "PersistentVolumeClaim", []string{"metadata", "name"}, nil},
		"class":       {"clusters without a default", Options{StorageClass: "fast"}, "PersistentVolumeClaim", []string{"spec", "storageClassName"}, all(2, "fast")},
		"size":        {"of one of them", Options{StorageSizes: map[string]string{SourceController: "50Gi"}}, "PersistentVolumeClaim", []string{"spec", "resources", "requests", "storage"}, []any{"2Gi", "50Gi"}},
		"no policies": {"networks that have none", Options{WithoutNetworkPolicies: true}, "NetworkPolicy", []string{"metadata", "name"}, nil},
		"pull secret": {"private registries", Options{PullSecrets: []string{"pull"}}, "Deployment", inPod("imagePullSecrets"), all(2, []any{map[string]any{"name": "pull"}})},
		"leases": {"a shard's lease ends in a hash", Options{Selector: "a=b"}, "Role", []string{"rules"}, []any{[]any{ // one Secret, whatever the shard
			map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets"}, "resourceNames": []any{"bundle-deployment-controller-keys"}, "verbs": []any{"get", "update"}},
		}, []any{
			map[string]any{"apiGroups": []any{"coordination.k8s.io"}, "resources": []any{"leases"}, "verbs": []any{"create"}},
			map[string]any{"apiGroups": []any{"coordination.k8s.io"}, "resources": []any{"leases"}, "verbs": []any{"get", "update", "patch"}},
		}, []any{ // the way to the source controller for uploads
			map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get", "list"}},
			map[string]any{"apiGroups": []any{""}, "resources": []any{"pods/portforward"}, "verbs": []any{"create"}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Manifests(tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, path(objects, tc.kind, tc.fields...)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestImages(t *testing.T) {
	objects, err := Manifests(Options{Registry: "example.org:5000/a", Tag: "v1.2.3", Images: map[string]string{
		SourceController: "example.org/b@sha256:" + strings.Repeat("a", 64)}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, containers := range path(objects, "Deployment", inPod("containers")...) {
		got = append(got, containers.([]any)[0].(map[string]any)["image"].(string))
	}
	want := []string{"example.org:5000/a/bundle-deployment-controller:v1.2.3", "example.org/b@sha256:" + strings.Repeat("a", 64)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !(Options{}).HasPlaceholders() || (Options{Registry: "example.org/a"}).HasPlaceholders() {
		t.Error("placeholders are not told from images")
	}
}

// TestNamespace checks that no object names the default namespace, with any other options.
func TestNamespace(t *testing.T) {
	objects, err := Manifests(Options{Namespace: "platform", AuthenticatedArtifacts: true, TenantNamespaces: []string{"shop"}, Selector: "a=b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		text, err := runtime.Encode(unstructured.UnstructuredJSONScheme, o)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), DefaultNamespace) && o.GetKind() != "CustomResourceDefinition" {
			t.Errorf("%s still names %s: %s", idOf(o), DefaultNamespace, text)
		}
	}
	if got := path(objects, "Namespace", "metadata", "name"); !cmp.Equal(got, []any{"platform"}) {
		t.Errorf("got %v", got)
	}
}

func TestValidate(t *testing.T) {
	for want, o := range map[string]Options{
		"":                                      {},
		`the namespace "A"`:                     {Namespace: "A"},
		`the image of bundle-source-controller`: {Registry: "Example.org/A"},
		"2 replicas cannot share a volume":      {Replicas: 2},
		"-1 replicas are too few":               {Replicas: -1},
		"neither class nor size":                {EphemeralStorage: true, StorageClass: "a"},
		`the storage size "ten"`:                {StorageSizes: map[string]string{SourceController: "ten"}},
		`the selector "a in b"`:                 {Selector: "a in b"},
		`there is no controller "x"`:            {Images: map[string]string{"x": "a"}},
		`the pull secret "A"`:                   {PullSecrets: []string{"A"}},
	} {
		err := o.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", o, err, want)
		}
	}
}
