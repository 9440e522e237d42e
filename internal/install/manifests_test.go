// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kustomized renders a kustomization of config/.
func kustomized(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // kustomizations set their own
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

// withValues reads values.
func withValues(t *testing.T, text string) Options {
	t.Helper()
	var o Options
	if err := yaml.Unmarshal([]byte(text), &o.Values); err != nil {
		t.Fatal(err)
	}
	return o
}

// rendered are the objects of options.
func rendered(t *testing.T, o Options) []*unstructured.Unstructured {
	t.Helper()
	objects, err := Manifests(o)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// contents are objects by kind and name, without the annotation by which Helm keeps CRDs.
func contents(objects []*unstructured.Unstructured) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, o := range objects {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "helm.sh/resource-policy")
		all[idOf(o)] = o.Object
	}
	return all
}

func idOf(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// TestChartIsConfig compares the chart with config/default, and values with the overlays of config/ that do the same.
func TestChartIsConfig(t *testing.T) {
	for folder, o := range map[string]Options{
		"default":                           {},
		"overlays/authenticated-artifacts":  withValues(t, "authenticatedArtifacts: true"),
		"overlays/namespaced-impersonation": withValues(t, "tenantNamespaces: [samples]"),
	} {
		if diff := cmp.Diff(contents(kustomized(t, folder)), contents(rendered(t, o))); diff != "" {
			t.Errorf("%s: -config +chart:\n%s", folder, diff)
		}
	}
}

// TestChartWithRolloutsIsConfig compares what the chart adds for rollouts with config/rollouts.
func TestChartWithRolloutsIsConfig(t *testing.T) {
	added := contents(rendered(t, withValues(t, "rollouts: {enabled: true}")))
	for id := range contents(rendered(t, Options{})) {
		if added[id] == nil {
			t.Errorf("%s is missing with rollouts", id)
		}
		delete(added, id)
	}
	want := contents(kustomized(t, "rollouts"))
	forChart := want["Deployment satchel-system/bundle-rollout-controller"]
	for _, problem := range []error{
		// What all controllers of the chart have, and what is only of use with a volume.
		unstructured.SetNestedField(forChart, map[string]any{"type": "Recreate"}, "spec", "strategy"),
		unstructured.SetNestedField(forChart, int64(65532), "spec", "template", "spec", "securityContext", "fsGroup"),
		unstructured.SetNestedField(forChart, "OnRootMismatch", "spec", "template", "spec", "securityContext", "fsGroupChangePolicy"),
	} {
		if problem != nil {
			t.Fatal(problem)
		}
	}
	if diff := cmp.Diff(want, added); diff != "" {
		t.Errorf("-config/rollouts +chart:\n%s", diff)
	}
	tenants := contents(rendered(t, withValues(t, "{rollouts: {enabled: true}, tenantNamespaces: [a]}")))
	if tenants["ClusterRoleBinding /satchel-rollout-impersonator"] != nil || tenants["RoleBinding a/satchel-rollout-impersonator"] == nil {
		t.Error("with tenantNamespaces the rollout controller may impersonate elsewhere, or not there")
	}
}

// TestOrder wants Namespaces and CRDs before what needs them, and Roles before their bindings.
func TestOrder(t *testing.T) {
	var kinds []string
	for _, o := range rendered(t, Options{}) {
		if len(kinds) == 0 || kinds[len(kinds)-1] != o.GetKind() {
			kinds = append(kinds, o.GetKind())
		}
	}
	want := []string{
		"Namespace", "NetworkPolicy", "ServiceAccount", "Secret", "PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole",
		"ClusterRoleBinding", "Role", "RoleBinding", "Service", "Deployment", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// fieldsOf reads a field of the objects of a kind.
func fieldsOf(objects []*unstructured.Unstructured, kind string, fields ...string) []any {
	var found []any
	for _, o := range objects {
		if o.GetKind() == kind {
			value, _, _ := unstructured.NestedFieldNoCopy(o.Object, fields...)
			found = append(found, value)
		}
	}
	return found
}

// both is a value of both controllers.
func both(value string) string {
	return "{sourceController: " + value + ", deploymentController: " + value + "}"
}

func TestValues(t *testing.T) {
	all := func(n int, value any) []any {
		var values []any
		for range n {
			values = append(values, value)
		}
		return values
	}
	inPod := func(field ...string) []string { return append([]string{"spec", "template", "spec"}, field...) }
	text := func(fields ...any) map[string]any {
		object := map[string]any{}
		for i := 0; i < len(fields); i += 2 {
			object[fields[i].(string)] = fields[i+1]
		}
		return object
	}
	for name, tc := range map[string]struct {
		reason, values string
		kind           string
		fields         []string
		want           []any
	}{
		"replicas":    {"one of them leads", "{storage: {persistent: false}, sourceController: {replicas: 3}, deploymentController: {replicas: 3}}", "Deployment", []string{"spec", "replicas"}, all(2, int64(3))},
		"rolling":     {"no volume is shared", "{storage: {persistent: false}, sourceController: {replicas: 3}, deploymentController: {replicas: 3}}", "Deployment", []string{"spec", "strategy", "type"}, all(2, "RollingUpdate")},
		"one":         {"the volume has to be released first", "{}", "Deployment", []string{"spec", "strategy", "type"}, all(2, "Recreate")},
		"no claims":   {"nothing is claimed", "storage: {persistent: false}", "PersistentVolumeClaim", []string{"metadata", "name"}, nil},
		"class":       {"clusters without a default", "storage: {className: fast}", "PersistentVolumeClaim", []string{"spec", "storageClassName"}, all(2, "fast")},
		"size":        {"of one of them", "sourceController: {storageSize: 50Gi}", "PersistentVolumeClaim", []string{"spec", "resources", "requests", "storage"}, []any{"2Gi", "50Gi"}},
		"no policies": {"networks that have none", "networkPolicies: {enabled: false}", "NetworkPolicy", []string{"metadata", "name"}, nil},
		"pull secret": {"private registries", "imagePullSecrets: [pull]", "Deployment", inPod("imagePullSecrets"), all(2, []any{text("name", "pull")})},
		"leases": {"the lease of a shard ends in a hash", "watchLabelSelector: a=b", "Role", []string{"rules"}, []any{
			[]any{text("apiGroups", []any{""}, "resources", []any{"secrets"}, "resourceNames", []any{"bundle-deployment-controller-keys"}, "verbs", []any{"get", "update"})},
			[]any{
				text("apiGroups", []any{""}, "resources", []any{"pods"}, "verbs", []any{"get", "list"}),
				text("apiGroups", []any{""}, "resources", []any{"pods/portforward"}, "verbs", []any{"create"}),
			},
			[]any{
				text("apiGroups", []any{"coordination.k8s.io"}, "resources", []any{"leases"}, "verbs", []any{"create"}),
				text("apiGroups", []any{"coordination.k8s.io"}, "resources", []any{"leases"}, "verbs", []any{"get", "update", "patch"}),
			},
		}},
		"tolerations":    {"nodes with taints", both("{tolerations: [{key: infra, operator: Exists}]}"), "Deployment", inPod("tolerations"), all(2, []any{text("key", "infra", "operator", "Exists")})},
		"node selector":  {"it is added to the default", both("{nodeSelector: {pool: infra}}"), "Deployment", inPod("nodeSelector"), all(2, text("kubernetes.io/os", "linux", "pool", "infra"))},
		"affinity":       {"it is copied", both("{affinity: {nodeAffinity: {a: b}}}"), "Deployment", inPod("affinity"), all(2, text("nodeAffinity", text("a", "b")))},
		"topology":       {"zones", both("{topologySpreadConstraints: [{maxSkew: 1}]}"), "Deployment", inPod("topologySpreadConstraints"), all(2, []any{text("maxSkew", int64(1))})},
		"priority":       {"eviction", both("{priorityClassName: system-cluster-critical}"), "Deployment", inPod("priorityClassName"), all(2, "system-cluster-critical")},
		"annotations":    {"of Pods", both("{podAnnotations: {a: b}}"), "Deployment", []string{"spec", "template", "metadata", "annotations"}, all(2, text("a", "b", "kubectl.kubernetes.io/default-container", "manager"))},
		"identity":       {"workload identity of clouds", "sourceController: {serviceAccount: {annotations: {eks.amazonaws.com/role-arn: arn}}}", "ServiceAccount", []string{"metadata", "annotations"}, []any{nil, text("eks.amazonaws.com/role-arn", "arn")}},
		"budget":         {"drains of nodes", "deploymentController: {podDisruptionBudget: {enabled: true}}", "PodDisruptionBudget", []string{"spec"}, []any{text("maxUnavailable", int64(1), "selector", text("matchLabels", text("app.kubernetes.io/name", DeploymentController)))}},
		"monitor":        {"the Prometheus operator", "podMonitor: {enabled: true}", "PodMonitor", []string{"metadata", "name"}, []any{"satchel"}},
		"no definitions": {"CRDs that are installed by other means", "crds: {install: false}", "CustomResourceDefinition", []string{"metadata", "name"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, fieldsOf(rendered(t, withValues(t, tc.values)), tc.kind, tc.fields...)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestContainerValues covers the values that end in the container, and that the controllers' own settings stay.
func TestContainerValues(t *testing.T) {
	objects := rendered(t, withValues(t, `
deploymentController:
  resources: {limits: {memory: 2Gi}}
  goMemoryLimit: 600MiB
  extraArgs: [--concurrent=16]
  env: [{name: HTTPS_PROXY, value: http://proxy.example.com}]
  extraVolumes: [{name: authorities, configMap: {name: authorities}}]
  extraVolumeMounts: [{name: authorities, mountPath: /authorities, readOnly: true}]
`))
	containers := fieldsOf(objects, "Deployment", "spec", "template", "spec", "containers")
	container, _ := containers[0].([]any)[0].(map[string]any)
	last := func(key string) any {
		list, _ := container[key].([]any)
		return list[len(list)-1]
	}
	got := map[string]any{
		"resources": container["resources"], "args": last("args"), "env": container["env"], "mount": last("volumeMounts"),
	}
	want := map[string]any{
		"resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "64Mi"}, "limits": map[string]any{"memory": "2Gi"}},
		"args":      "--concurrent=16",
		"env": []any{
			map[string]any{"name": "RUNTIME_NAMESPACE", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.namespace"}}},
			map[string]any{"name": "GOMEMLIMIT", "value": "600MiB"},
			map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy.example.com"},
		},
		"mount": map[string]any{"name": "authorities", "mountPath": "/authorities", "readOnly": true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	volumes, _ := fieldsOf(objects, "Deployment", "spec", "template", "spec", "volumes")[0].([]any)
	if diff := cmp.Diff(map[string]any{"name": "authorities", "configMap": map[string]any{"name": "authorities"}}, volumes[len(volumes)-1]); diff != "" {
		t.Errorf("volumes: -want +got:\n%s", diff)
	}
}

func TestImages(t *testing.T) {
	o := withValues(t, "{image: {registry: 'example.org:5000/a'}, sourceController: {image: 'example.org/b@sha256:"+strings.Repeat("a", 64)+"'}}")
	o.Version = "v1.2.3"
	objects := rendered(t, o)
	want := map[string]string{
		DeploymentController: "example.org:5000/a/bundle-deployment-controller:v1.2.3",
		SourceController:     "example.org/b@sha256:" + strings.Repeat("a", 64),
	}
	if diff := cmp.Diff(want, Images(objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if HasPlaceholders(objects) || !HasPlaceholders(rendered(t, Options{})) {
		t.Error("placeholders are not told from images")
	}
}

// TestNamespace checks that no object names the default namespace, whatever the values are.
func TestNamespace(t *testing.T) {
	o := withValues(t, "{authenticatedArtifacts: true, tenantNamespaces: [shop], watchLabelSelector: a=b, podMonitor: {enabled: true}, sourceController: {podDisruptionBudget: {enabled: true}}}")
	o.Namespace = "platform"
	objects := rendered(t, o)
	for _, o := range objects {
		text, err := runtime.Encode(unstructured.UnstructuredJSONScheme, o)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), DefaultNamespace) && o.GetKind() != "CustomResourceDefinition" {
			t.Errorf("%s still names %s: %s", idOf(o), DefaultNamespace, text)
		}
	}
	if got := fieldsOf(objects, "Namespace", "metadata", "name"); !cmp.Equal(got, []any{"platform"}) {
		t.Errorf("got %v", got)
	}
	if _, changed := o.Values["namespace"]; changed {
		t.Error("the options are changed")
	}
}

// TestRefused covers the checks of this package, and those of the schema of the chart.
func TestRefused(t *testing.T) {
	for values, want := range map[string]string{
		"image: {registry: Example.org/A}":                                   "the image of bundle-source-controller",
		"sourceController: {replicas: 2}":                                    "2 replicas of bundle-source-controller cannot share a volume",
		"sourceController: {replicas: -1}":                                   "-1 replicas of bundle-source-controller are too few",
		"sourceController: {storageSize: ten}":                               "storageSize",
		"watchLabelSelector: a in b":                                         `the selector "a in b"`,
		"imagePullSecrets: [A]":                                              `the pull secret "A"`,
		"tenantNamespaces: [A]":                                              `the namespace "A"`,
		"sourceControler: {}":                                                "sourceControler",
		"image: {pullPolicy: Sometimes}":                                     "pullPolicy",
		"deploymentController: {extraArgs: [rm]}":                            "extraArgs",
		"deploymentController: {podDisruptionBudget: {maxUnavailable: few}}": "maxUnavailable",
		"deploymentController: {env: [{value: x}]}":                          "name",
		"deploymentController: {podAnnotations: {a: 1}}":                     "podAnnotations",
		"tenantNamespaces: shop":                                             "tenantNamespaces",
		"networkPolicies: {enabled: perhaps}":                                "enabled",
		"storage: {persistent: true, class: fast}":                           "storage",
	} {
		if _, err := Manifests(withValues(t, values)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", values, err, want)
		}
	}
	if _, err := Manifests(Options{Namespace: "A"}); err == nil || !strings.Contains(err.Error(), `the namespace "A"`) {
		t.Errorf("got %v", err)
	}
}
