// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/install"
)

// render renders the chart with Helm's engine.
func render(t *testing.T, namespace, values string) (map[string]*unstructured.Unstructured, error) {
	t.Helper()
	files, err := Files("dev")
	if err != nil {
		t.Fatal(err)
	}
	var buffered []*archive.BufferedFile
	for _, name := range slices.Sorted(maps.Keys(files)) {
		buffered = append(buffered, &archive.BufferedFile{Name: name, Data: files[name]})
	}
	loaded, err := loader.LoadFiles(buffered)
	if err != nil {
		t.Fatal(err)
	}
	if err := loaded.Validate(); err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	chosen, err := util.ToRenderValues(loaded, given, common.ReleaseOptions{Name: "satchel", Namespace: namespace, IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(loaded, chosen)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]*unstructured.Unstructured{}
	for name, text := range rendered {
		if strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		for document := range strings.SplitSeq(text, "---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			if len(o.Object) > 0 {
				objects[idOf(o)] = o
			}
		}
	}
	return objects, nil
}

func idOf(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// manifests are what options give, as YAML reads numbers.
func manifests(t *testing.T, o install.Options) map[string]any {
	t.Helper()
	objects, err := install.Manifests(o)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]any{}
	for _, o := range objects {
		found[idOf(o)] = asYAML(t, o)
	}
	return found
}

// asYAML is an object without what tells Helm to keep it, and with no strategy where that is the default.
func asYAML(t *testing.T, o *unstructured.Unstructured) any {
	t.Helper()
	o = o.DeepCopy()
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "helm.sh/resource-policy")
	if kind, _, _ := unstructured.NestedString(o.Object, "spec", "strategy", "type"); kind == "RollingUpdate" {
		unstructured.RemoveNestedField(o.Object, "spec", "strategy")
	}
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	var read any
	if err := yaml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// TestSameAsManifests compares the chart with config/default, for default values, and with the objects of satchel install,
// for others.
func TestSameAsManifests(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, namespace, values string
		options                   install.Options
		without                   []string // of the options' objects
	}{
		"default values": {reason: "this is config/default", namespace: "default"},
		"own namespace":  {reason: "Helm creates it", namespace: "satchel-system", without: []string{"Namespace /satchel-system"}},
		"other namespace": {reason: "it is named in arguments and bindings", namespace: "ops", without: []string{"Namespace /ops"},
			options: install.Options{Namespace: "ops"}},
		"named namespace": {reason: "the release may live elsewhere", namespace: "ops", values: "namespace: {name: bundles}",
			options: install.Options{Namespace: "bundles"}},
		"images": {reason: "a mirror", namespace: "default", values: "{image: {registry: example.org/a, tag: v1}, imagePullSecrets: [pull], sourceController: {image: example.org/b:v2}}",
			options: install.Options{Registry: "example.org/a", Tag: "v1", PullSecrets: []string{"pull"}, Images: map[string]string{install.SourceController: "example.org/b:v2"}}},
		"ephemeral": {reason: "no claims, and several replicas", namespace: "default", values: "{storage: {persistent: false}, sourceController: {replicas: 2}, deploymentController: {replicas: 2}}",
			options: install.Options{EphemeralStorage: true, Replicas: 2}},
		"storage": {reason: "classes and sizes", namespace: "default", values: "{storage: {className: fast}, sourceController: {storageSize: 50Gi}}",
			options: install.Options{StorageClass: "fast", StorageSizes: map[string]string{install.SourceController: "50Gi"}}},
		"no policies": {reason: "networks without", namespace: "default", values: "networkPolicies: {enabled: false}", options: install.Options{WithoutNetworkPolicies: true}},
		"tenants":     {reason: "narrow rights", namespace: "default", values: "tenantNamespaces: [shop, web]", options: install.Options{TenantNamespaces: []string{"shop", "web"}}},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, tc.namespace, tc.values)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]any{}
			for id, o := range rendered {
				got[id] = asYAML(t, o)
			}
			want := manifests(t, tc.options)
			for _, id := range tc.without {
				delete(want, id)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -manifests +chart:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOwnValues covers the values without a counterpart in satchel install.
func TestOwnValues(t *testing.T) {
	objects, err := render(t, "default", "{podMonitor: {enabled: true}, crds: {keep: false}, deploymentController: {resources: {limits: {memory: 2Gi}}, extraArgs: [--concurrent=16]}}")
	if err != nil {
		t.Fatal(err)
	}
	if objects["PodMonitor satchel-system/satchel"] == nil {
		t.Error("there is no PodMonitor")
	}
	definition := objects["CustomResourceDefinition /bundlesources.satchel.dev"]
	if _, kept := definition.GetAnnotations()["helm.sh/resource-policy"]; kept {
		t.Error("a definition is kept although it should go")
	}
	containers, _, _ := unstructured.NestedSlice(objects["Deployment satchel-system/bundle-deployment-controller"].Object, "spec", "template", "spec", "containers")
	container, _ := containers[0].(map[string]any)
	args, _ := container["args"].([]any)
	memory, _, _ := unstructured.NestedString(container, "resources", "limits", "memory")
	if memory != "2Gi" || args[len(args)-1] != "--concurrent=16" {
		t.Errorf("got %s, %v", memory, args)
	}
	kept, err := render(t, "default", "")
	if err != nil {
		t.Fatal(err)
	}
	for id, o := range kept {
		if policy := o.GetAnnotations()["helm.sh/resource-policy"]; (policy == "keep") != (o.GetKind() == "CustomResourceDefinition") {
			t.Errorf("%s has the policy %q", id, policy)
		}
	}
}

// TestSchema checks that unknown and invalid values are refused.
func TestSchema(t *testing.T) {
	for values, want := range map[string]string{
		"{sourceControler: {}}":                      "sourceControler",
		"{sourceController: {replicas: 2}}":          "replicas",
		"{sourceController: {replicas: -1}}":         "replicas",
		"{image: {pullPolicy: Sometimes}}":           "pullPolicy",
		"{namespace: {name: Ops}}":                   "name",
		"{deploymentController: {extraArgs: [rm]}}":  "extraArgs",
		"{sourceController: {storageSize: enough}}":  "storageSize",
		"{tenantNamespaces: shop}":                   "tenantNamespaces",
		"{networkPolicies: {enabled: perhaps}}":      "enabled",
		"{crds: {keep: true, install: true, x: y}}":  "crds",
		"{storage: {persistent: true, class: fast}}": "storage",
	} {
		if _, err := render(t, "default", values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", values, err)
		}
	}
}

func TestVersion(t *testing.T) {
	for version, want := range map[string]string{"v1.2.3": "1.2.3", "v1.2.3-4-gabc": "1.2.3-4-gabc", "abc": "0.0.0-abc", "dev": "0.0.0-dev", "a_b": "0.0.0-a-b"} {
		if got := Version(version); got != want {
			t.Errorf("Version(%q) = %q", version, got)
		}
	}
}
