// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

// TestW2ServicePorts: ports are a set, 443 where none is given, and no two targets share a number.
func TestW2ServicePorts(t *testing.T) {
	number := func(n int) *intstr.IntOrString { v := intstr.FromInt(n); return &v }
	name := func(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }
	hook := func(port int32, target *intstr.IntOrString) v1alpha1.WebhookDescription {
		return v1alpha1.WebhookDescription{DeploymentName: "d", ContainerPort: port, TargetPort: target}
	}
	for label, c := range map[string]struct {
		reason string
		hooks  []v1alpha1.WebhookDescription
		want   []any
	}{
		"default": {"no port is 443, and leads to itself", []v1alpha1.WebhookDescription{hook(0, nil)}, []any{port("443", 443, int64(443))}},
		"shared":  {"equal ports are one", []v1alpha1.WebhookDescription{hook(443, number(9443)), hook(0, number(9443))}, []any{port("443", 443, int64(9443))}},
		"two":     {"different ports are two, sorted", []v1alpha1.WebhookDescription{hook(8443, nil), hook(443, nil)}, []any{port("443", 443, int64(443)), port("8443", 8443, int64(8443))}},
		"two targets": {"the second target gets its own number", []v1alpha1.WebhookDescription{hook(443, number(9444)), hook(443, number(9443))},
			[]any{port("443", 443, int64(9443)), port("9444", 9444, int64(9444))}},
		"target taken": {"or the next free one", []v1alpha1.WebhookDescription{hook(443, number(9443)), hook(443, number(9444)), hook(9444, number(1))},
			[]any{port("443", 443, int64(9443)), port("9444", 9444, int64(1)), port("9445", 9445, int64(9444))}},
		"named target": {"a name has no number of its own", []v1alpha1.WebhookDescription{hook(443, number(9443)), hook(443, name("web"))},
			[]any{port("443", 443, int64(9443)), port("444", 444, "web")}},
	} {
		t.Run(label, func(t *testing.T) {
			bundle := &bundle.Bundle{}
			bundle.CSV.Spec.WebhookDefinitions = c.hooks
			in := newInput(bundle, Options{}, nil)
			if diff := cmp.Diff(c.want, in.portList("d")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func port(name string, number int64, target any) map[string]any {
	return map[string]any{"name": name, "port": number, "targetPort": target}
}

// TestO4MergeServiceAccounts: labels, annotations and pull secrets are united, contradictions refused.
func TestO4MergeServiceAccounts(t *testing.T) {
	account := func(extra map[string]any) product {
		object := map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "a", "namespace": "n"}}
		for key, value := range extra {
			object[key] = value
		}
		return product{Manifest: manifest.Manifest{File: "f.yaml", Object: &unstructured.Unstructured{Object: object}}}
	}
	secrets := func(names ...string) []any {
		var out []any
		for _, n := range names {
			out = append(out, map[string]any{"name": n})
		}
		return out
	}
	in := &input{Bundle: &bundle.Bundle{}}
	merged, problems := in.mergeDuplicates([]product{
		account(nil), account(map[string]any{"imagePullSecrets": secrets("x", "y")}), account(map[string]any{"imagePullSecrets": secrets("y", "z"), "automountServiceAccountToken": false}),
	})
	if len(merged) != 1 || len(problems) != 0 {
		t.Fatalf("%d objects, %v", len(merged), problems)
	}
	if diff := cmp.Diff(secrets("x", "y", "z"), merged[0].Object.Object["imagePullSecrets"]); diff != "" {
		t.Errorf("pull secrets (-want +got):\n%s", diff)
	}
	_, problems = in.mergeDuplicates([]product{account(map[string]any{"automountServiceAccountToken": true}), account(map[string]any{"automountServiceAccountToken": false})})
	if len(problems) != 1 || problems[0].Rule != "O4" {
		t.Errorf("a contradiction gives %v", problems)
	}
}

// TestO4JoinService: a Service of the bundle that bears the name of a webhook's serves the webhook as well.
func TestO4JoinService(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: gadget-manager-service, annotations: {own: kept}}\nspec: "
	for name, c := range map[string]struct {
		reason, spec, want string
		warnings           int
	}{
		"other port": {"its ports stay, and all get names", "{selector: {app: gadget-manager}, ports: [{port: 8443, targetPort: metrics}]}",
			"{selector: {app: gadget-manager}, ports: [{name: port-8443, port: 8443, targetPort: metrics}, {name: '443', port: 443, targetPort: 9443}, {name: '444', port: 444, targetPort: webhook}]}", 0},
		"same port": {"its entry stays", "{selector: {app: gadget-manager}, type: ClusterIP, ports: [{name: https, port: 443, targetPort: 9443}]}",
			"{selector: {app: gadget-manager}, type: ClusterIP, ports: [{name: https, port: 443, targetPort: 9443}, {name: '444', port: 444, targetPort: webhook}]}", 0},
		"other protocol": {"UDP is another port", "{selector: {app: gadget-manager}, ports: [{name: dns, port: 443, protocol: UDP}]}",
			"{selector: {app: gadget-manager}, ports: [{name: dns, port: 443, protocol: UDP}, {name: '443', port: 443, targetPort: 9443}, {name: '444', port: 444, targetPort: webhook}]}", 0},
		"other target": {"the webhook must be reached", "{selector: {app: gadget-manager}, ports: [{name: https, port: 443, targetPort: 1}]}",
			"{selector: {app: gadget-manager}, ports: [{name: https, port: 443, targetPort: 9443}, {name: '444', port: 444, targetPort: webhook}]}", 1},
		"other Pods": {"at its Pods", "{selector: {app: other}, ports: [{name: https, port: 443, targetPort: 9443}]}",
			"{selector: {app: gadget-manager}, ports: [{name: https, port: 443, targetPort: 9443}, {name: '444', port: 444, targetPort: webhook}]}", 1},
		"name taken": {"names stay different", "{selector: {app: gadget-manager}, ports: [{name: '443', port: 80}]}",
			"{selector: {app: gadget-manager}, ports: [{name: '443', port: 80}, {name: port-443, port: 443, targetPort: 9443}, {name: '444', port: 444, targetPort: webhook}]}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			bundle, problems := bundle.Parse(bundleWith(t, "gadget", change{"manifests/extras.yaml", "gadget-manager-service", "elsewhere"}, change{"manifests/zz.yaml", "", service + c.spec}), manifest.Limits{}, false)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			o := testOptions()
			o.CertificateProvider = ServiceCA
			before := len(bundle.Warnings)
			rendered, err := Render(bundle, o)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			var want map[string]any
			if err := yaml.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			for _, m := range rendered.Manifests {
				if m.Object.GetName() != "gadget-manager-service" {
					continue
				}
				if diff := cmp.Diff(asYAML(t, want), asYAML(t, m.Object.Object["spec"])); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.reason, diff)
				}
				if got := m.Object.GetAnnotations(); got["own"] != "kept" || got["service.beta.openshift.io/serving-cert-secret-name"] == "" {
					t.Errorf("annotations %v", got)
				}
			}
			// The sample that is left out is the one warning that always comes.
			if got := len(rendered.Warnings) - before - 1; got != c.warnings {
				t.Errorf("%d warnings: %v", got, rendered.Warnings)
			}
		})
	}
}

func asYAML(t *testing.T, value any) string {
	t.Helper()
	data, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
