// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// difference is one of the deliberate differences from OLM v1, by the number that it has in the rule book and in the
// documentation, seen in one rendering.
type difference struct {
	number  int
	reason  string
	bundle  string // gadget unless said otherwise
	changes []change
	adjust  func(*Options)

	see     map[string]string // YAML of a place, "Kind name: path/of/the/field"; nothing: it is absent
	count   map[string]int    // how many of a "Kind" or "Kind namespace" there are
	warning string            // part of one of the warnings
	refused string            // "rule file: part of the message" of the only problem
}

// webhookOf gives the webhook fill another deployment.
func webhookOf(deployment string) change {
	return change{csvFile, "fill.gadgets.tools.example.org\n    deploymentName: gadget-manager", "fill.gadgets.tools.example.org\n    deploymentName: " + deployment}
}

var (
	longName   = strings.Repeat("d", 59)
	serviceOne = longName[:46] + "-" + base36([]byte(longName + "1"))[:8] + "-service"
	serviceTwo = longName[:46] + "-" + base36([]byte(longName + "2"))[:8] + "-service"
	bothPorts  = "[{name: port-8443, port: 8443, targetPort: metrics}, {name: '443', port: 443, targetPort: 9443}, {name: '444', port: 444, targetPort: webhook}]"
	bothMounts = "[{mountPath: /tmp/k8s-webhook-server/serving-certs, name: webhook-cert}, {mountPath: /apiserver.local.config/certificates, name: apiservice-cert}]"
	annotation = "Deployment gadget-manager: spec/template/metadata/annotations/"
	verticals  = change{"manifests/zz.yaml", "", "apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: sizes}\nspec: {}"}
	narrowRule = "apiGroups: [tools.example.org]\n      apiVersions: [v1]\n      operations: [CREATE]\n      resources: [gadgets]"
)

func file(name, content string) []change { return []change{{"manifests/" + name, "", content}} }

func csvChange(old, now string) change { return change{csvFile, old, now} }

var differences = map[string]difference{
	"accounts are united": {number: 1, reason: "the bundle's account and the generated one are one, with all that both have", count: map[string]int{"ServiceAccount": 2},
		see: map[string]string{"ServiceAccount gadget-manager: metadata/labels": "{part-of: gadget}", "ServiceAccount gadget-manager: imagePullSecrets": "[{name: pull}]"}},
	"equal permissions count once": {number: 1, reason: "the same permission is there twice", bundle: "legacy", count: map[string]int{"Role": 1, "RoleBinding": 1}},
	"services gain ports":          {number: 1, reason: "the bundle's Service has the name of the webhook's", see: map[string]string{"Service gadget-manager-service: spec/ports": bothPorts}},
	"contradictions": {number: 1, reason: "what cannot be merged is refused, naming both files", changes: file("zz.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gadget-config}\ndata: {a: '2'}"),
		refused: "O4 manifests/zz.yaml: another one of this name in manifests/extras.yaml"},

	"admission port": {number: 2, reason: "443 for admission webhooks without a port", changes: []change{csvChange("    containerPort: 443\n    targetPort: 9443\n", "    targetPort: webhook\n")},
		see: map[string]string{"ValidatingWebhookConfiguration check.gadgets.tools.example.org: webhooks/0/clientConfig/service/port": "443",
			"MutatingWebhookConfiguration fill.gadgets.tools.example.org: webhooks/0/clientConfig/service/port": "443"}},
	"conversion port": {number: 2, reason: "443 for conversion webhooks without a port", bundle: "converter", changes: []change{{"manifests/csv.json", `"containerPort": 8443, `, ""}},
		see: map[string]string{"CustomResourceDefinition shapes.draw.example.org: spec/conversion/webhook/clientConfig/service/port": "443",
			"Service converter-with-dots-service: spec/ports": "[{name: '443', port: 443, targetPort: 443}]"}},

	"long names": {number: 3, reason: "two long names that differ at their end do not collide, and are labels",
		changes: []change{webhookOf(longName + "2"), csvChange("deploymentName: gadget-manager", "deploymentName: "+longName+"1"),
			csvChange("name: gadget-manager\n        label", "name: "+longName+"1\n        label"), csvChange("name: gadget-exporter\n        spec", "name: "+longName+"2\n        spec")},
		see: map[string]string{"Service " + serviceOne + ": metadata/name": serviceOne, "Service " + serviceTwo + ": metadata/name": serviceTwo}},
	"short host": {number: 3, reason: "a common name where it fits", see: map[string]string{"Certificate gadget-manager-service-cert: spec/commonName": "gadget-manager-service.tools"}},
	"long host": {number: 3, reason: "none where X.509 would refuse it", adjust: func(o *Options) { o.InstallNamespace = strings.Repeat("n", 42) },
		see: map[string]string{"Certificate gadget-manager-service-cert: spec/commonName": "", "Certificate gadget-manager-service-cert: spec/dnsNames/0": "gadget-manager-service." + strings.Repeat("n", 42)}},

	"two targets": {number: 4, reason: "two targets of one port get a number and a name each, and their webhooks go there",
		see: map[string]string{"Service gadget-manager-service: spec/ports": bothPorts,
			"ValidatingWebhookConfiguration check.gadgets.tools.example.org: webhooks/0/clientConfig/service/port": "443",
			"MutatingWebhookConfiguration fill.gadgets.tools.example.org: webhooks/0/clientConfig/service/port":    "444"}},

	"roles where it runs": {number: 5, reason: "an operator elects its leader where it runs, whatever it watches", adjust: func(o *Options) { o.WatchNamespaces = []string{"team-a"} },
		count: map[string]int{"Role tools": 2, "RoleBinding tools": 2, "Role team-a": 2, "RoleBinding team-a": 2}},

	"init containers": {number: 6, reason: "an init container that mounted a replaced volume mounts the certificate",
		see: map[string]string{"Deployment gadget-manager: spec/template/spec/initContainers/0/volumeMounts": bothMounts}},

	"old definitions": {number: 7, reason: "nothing of v1beta1 is lost", bundle: "legacy", see: map[string]string{
		"CustomResourceDefinition relics.old.example.k8s.io: apiVersion":                                  "apiextensions.k8s.io/v1",
		"CustomResourceDefinition relics.old.example.k8s.io: spec/versions/0/additionalPrinterColumns":    "[{jsonPath: .metadata.creationTimestamp, name: Age, type: date}]",
		"CustomResourceDefinition relics.old.example.k8s.io: spec/versions/0/subresources":                "{status: {}}",
		"CustomResourceDefinition relics.old.example.k8s.io: spec/versions/0/schema/openAPIV3Schema/type": "object",
		"CustomResourceDefinition relics.old.example.k8s.io: spec/validation":                             "",
	}},
	"impossible definitions": {number: 7, reason: "what v1 cannot say is refused by its field", bundle: "legacy", changes: []change{{"manifests/relics.yaml", "properties:\n        spec:", "$ref: 'http://example.org'\n      properties:\n        spec:"}},
		refused: "P10 manifests/relics.yaml: spec.versions[0].schema.openAPIV3Schema"},

	"samples are left out": {number: 8, reason: "a Role of a cloud API is no Role", see: map[string]string{"Role example: kind": ""}, warning: `Role example is a custom resource of the group "cloud.example.org"`},
	"samples are kept": {number: 8, reason: "where that is wanted", adjust: func(o *Options) { o.IncludeCustomResources = true },
		see: map[string]string{"Role example: apiVersion": "cloud.example.org/v1"}},
	"scope by group": {number: 8, reason: "VerticalPodAutoscaler is namespaced", changes: []change{verticals}, see: map[string]string{"VerticalPodAutoscaler sizes: metadata/namespace": "tools"}},

	"no namespaces": {number: 9, reason: "objects of the cluster have none", see: map[string]string{
		"PriorityClass gadget-critical: metadata/namespace":                                  "",
		"ValidatingWebhookConfiguration check.gadgets.tools.example.org: metadata/namespace": "",
		"MutatingWebhookConfiguration fill.gadgets.tools.example.org: metadata/namespace":    "",
	}},

	"inferred versions": {number: 10, reason: "a Service has one obvious group", bundle: "legacy", see: map[string]string{"Service legacy-metrics: apiVersion": "v1"}, warning: "legacy-metrics has no apiVersion"},
	"unknown versions":  {number: 10, reason: "an Ingress has had several", changes: file("zz.yaml", "kind: Ingress\nmetadata: {name: x}"), refused: "identity manifests/zz.yaml: no apiVersion"},

	"default namespace": {number: 11, reason: "one value is legal: the operator supports its own namespace alone", bundle: "legacy",
		see: map[string]string{"Deployment legacy: spec/template/metadata/annotations/olm.targetNamespaces": "tools"}},

	"no conditions":   {number: 12, reason: "off by default", see: map[string]string{"Deployment gadget-exporter: spec/template/spec/containers/0/env": ""}},
	"with conditions": {number: 12, reason: "the name that OLM v0 would give", adjust: func(o *Options) { o.OperatorConditions = true }, see: map[string]string{"Deployment gadget-exporter: spec/template/spec/containers/0/env": "[{name: OPERATOR_CONDITION_NAME, value: gadget-operator.v1.2.3}]"}},

	"no API roles": {number: 13, reason: "off by default", see: map[string]string{"ClusterRole gadgets.tools.example.org-v1-admin: kind": ""}},
	"with API roles": {number: 13, reason: "those of OLM v0", adjust: func(o *Options) { o.APIClusterRoles = true }, see: map[string]string{
		"ClusterRole gadgets.tools.example.org-v1-admin: rules/0/verbs": "['*']", "ClusterRole gadgets.tools.example.org-v1-edit: rules/0/verbs": "[create, update, patch, delete]",
		"ClusterRole gadgets.tools.example.org-v1-view: rules/0/verbs": "[get, list, watch]", "ClusterRole gadgets.tools.example.org-v1-crdview: rules/0/resourceNames": "[gadgets.tools.example.org]"}},

	"all annotations": {number: 14, reason: "as OLM by default", see: map[string]string{annotation + "capabilities": "from the template", annotation + "olm.operatorNamespace": "tools",
		"Deployment gadget-exporter: spec/template/metadata/annotations/capabilities": "Basic Install"}},
	"required annotations": {number: 14, reason: "a changed annotation of the bundle restarts no Pod", adjust: func(o *Options) { o.PodAnnotations = RequiredAnnotations },
		see: map[string]string{"Deployment gadget-exporter: spec/template/metadata/annotations": "{olm.operatorNamespace: tools, olm.targetNamespaces: ''}"}},

	"accounts of deployments": {number: 15, reason: "a Pod without its account does not start", see: map[string]string{"ServiceAccount gadget-exporter: metadata/namespace": "tools"}},

	"our group": {number: 16, reason: "a webhook could keep Satchel from removing it", changes: []change{csvChange(narrowRule, strings.Replace(narrowRule, "tools.example.org", "satchel.dev", 1))}, refused: "V12 " + csvFile + `: "satchel.dev"`},
	"subresource patterns": {number: 16, reason: "they do not slip through", changes: []change{csvChange(narrowRule, strings.NewReplacer("tools.example.org", "admissionregistration.k8s.io", "[gadgets]", "['*/*']").Replace(narrowRule))},
		refused: "V12 " + csvFile + `: "*/*"`},

	"other files": {number: 17, reason: "a README is no manifest", warning: "left out: manifests/README.md"},
	"double keys": {number: 17, reason: "which one is meant", changes: file("zz.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x, name: y}"), refused: "syntax manifests/zz.yaml: appears twice"},
	"two CSVs": {number: 17, reason: "which one is meant", changes: file("zz.yaml", "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: other}"),
		refused: "P8 manifests/zz.yaml: another ClusterServiceVersion"},
}

// TestDifferences shows every numbered difference from OLM v1, on bundles of our own.
func TestDifferences(t *testing.T) {
	missing := map[int]bool{}
	for number := 1; number <= 17; number++ {
		missing[number] = true
	}
	for name, d := range differences {
		t.Run(fmt.Sprintf("%02d %s", d.number, name), d.check)
		delete(missing, d.number)
	}
	if len(missing) > 0 {
		t.Errorf("no test for the differences %v", slices.Sorted(maps.Keys(missing)))
	}
}

func (d difference) check(t *testing.T) {
	o := testOptions()
	if d.adjust != nil {
		d.adjust(&o)
	}
	bundle := d.bundle
	if bundle == "" {
		bundle = "gadget"
	}
	rendered, err := Convert(bundleWith(t, bundle, d.changes...), o, manifest.Limits{})
	if d.refused != "" {
		d.checkRefusal(t, err)
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", d.reason, err)
	}
	if !slices.ContainsFunc(rendered.Warnings, func(w string) bool { return strings.Contains(w, d.warning) }) && d.warning != "" {
		t.Errorf("%s: no warning says %q: %q", d.reason, d.warning, rendered.Warnings)
	}
	counted := map[string]int{}
	objects := map[string]map[string]any{}
	for _, m := range rendered.Manifests {
		kind := m.Object.GetKind()
		objects[kind+" "+m.Object.GetName()] = m.Object.Object
		counted[kind]++
		counted[kind+" "+m.Object.GetNamespace()]++
	}
	for what, want := range d.count {
		if counted[what] != want {
			t.Errorf("%s: %d of %s, want %d", d.reason, counted[what], what, want)
		}
	}
	for place, want := range d.see {
		object, path, _ := strings.Cut(place, ": ")
		if got := asYAML(t, lookUp(objects[object], path)); got != normalYAML(t, want) {
			t.Errorf("%s: %s\nis   %swant %s", d.reason, place, got, normalYAML(t, want))
		}
	}
}

func (d difference) checkRefusal(t *testing.T, err error) {
	t.Helper()
	head, part, _ := strings.Cut(d.refused, ": ")
	problems := problemsOf(t, err)
	if len(problems) != 1 || problems[0].Rule+" "+problems[0].File != head || !strings.Contains(problems[0].Message, part) {
		t.Errorf("%s: want %s\ngot %v", d.reason, d.refused, err)
	}
}

// lookUp follows a path of keys and indexes; nil where it ends early.
func lookUp(value any, path string) any {
	for step := range strings.SplitSeq(path, "/") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			at, err := strconv.Atoi(step)
			if err != nil || at >= len(v) {
				return nil
			}
			value = v[at]
		default:
			return nil
		}
	}
	return value
}

func normalYAML(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return asYAML(t, value)
}
