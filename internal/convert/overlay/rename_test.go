// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
)

// network names its objects in every way that kustomize follows.
const network = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: a}
spec:
  template:
    spec:
      serviceAccountName: web
      priorityClassName: high
      imagePullSecrets: [{name: pull}, {name: foreign}]
      initContainers: [{name: i, envFrom: [{secretRef: {name: web}}], env: [{name: A, valueFrom: {configMapKeyRef: {name: web, key: a}}}]}]
      containers: [{name: c, envFrom: [{configMapRef: {name: web}}], env: [{name: A, valueFrom: {secretKeyRef: {name: web, key: a}}}, {name: web, value: web}]}]
      volumes:
      - {name: web, configMap: {name: web}}
      - {name: s, secret: {secretName: web}}
      - {name: p, projected: {sources: [{secret: {name: web}}, {configMap: {name: foreign}}, {configMap: {name: web}}]}}
      - {name: d, persistentVolumeClaim: {claimName: web}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: a}, spec: {serviceName: web, volumeClaimTemplates: [{spec: {storageClassName: fast}}], template: {spec: {serviceAccountName: default}}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: cron, namespace: a}, spec: {jobTemplate: {spec: {template: {spec: {serviceAccountName: web, containers: [{name: c, envFrom: [{configMapRef: {name: web}}]}]}}}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: a}}
---
{apiVersion: v1, kind: Secret, metadata: {name: web, namespace: a}}
---
{apiVersion: v1, kind: Secret, metadata: {name: pull, namespace: a}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: a}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, namespace: a}, imagePullSecrets: [{name: pull}]}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web, namespace: a}, spec: {volumeName: disk, storageClassName: fast}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {storageClassName: fast}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: a}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: a, annotations: {nginx.ingress.kubernetes.io/auth-secret: web}}, spec: {tls: [{secretName: web}], defaultBackend: {service: {name: web}}, rules: [{http: {paths: [{backend: {service: {name: web}}}, {backend: {service: {name: foreign}}}]}}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: web, namespace: a}, rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [web, foreign], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: web, namespace: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}, subjects: [{kind: ServiceAccount, name: web, namespace: a}, {kind: ServiceAccount, name: web, namespace: elsewhere}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}, rules: [{apiGroups: [""], resources: [secrets], resourceNames: [web], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: reader}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}, subjects: [{kind: ServiceAccount, name: web, namespace: a}]}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: hook}, webhooks: [{name: a.b.c, clientConfig: {service: {name: web, namespace: a}}}, {name: d.e.f, clientConfig: {service: {name: web, namespace: elsewhere}}}]}
---
{apiVersion: v1, kind: Namespace, metadata: {name: a}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: webs.example.org}, spec: {group: example.org, names: {kind: Web, plural: webs}}}
`

// TestNamesAsInKustomize compares with the library itself.
func TestNamesAsInKustomize(t *testing.T) {
	ours, _, problems := outcome(t, network, list(overlay.Processor{Names: &overlay.Names{Prefix: "p-", Suffix: "-s"}}))
	if problems != "" {
		t.Fatal(problems)
	}
	memory := filesys.MakeFsInMemory()
	for name, text := range map[string]string{"/kustomization.yaml": "resources: [all.yaml]\nnamePrefix: p-\nnameSuffix: -s\n", "/all.yaml": network} {
		if err := memory.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(byName(t, string(theirs)), byName(t, ours)); diff != "" {
		t.Errorf("(-kustomize +ours):\n%s", diff)
	}
	if count := strings.Count(ours, "p-web-s"); count < 30 {
		t.Errorf("only %d names changed", count)
	}
}

// byName are objects by kind and name.
func byName(t *testing.T, text string) map[string]any {
	t.Helper()
	objects := map[string]any{}
	for _, document := range strings.Split(text, "---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if object != nil {
			objects[object["kind"].(string)+" "+object["metadata"].(map[string]any)["name"].(string)] = object //nolint:forcetypeassert // it has both
		}
	}
	return objects
}

// TestNamesBeyondKustomize are followed here, and not by the library.
func TestNamesBeyondKustomize(t *testing.T) {
	const text = `{apiVersion: v1, kind: Service, metadata: {name: hook}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: webs.example.org, annotations: {cert-manager.io/inject-ca-from: install/cert}}, spec: {conversion: {webhook: {clientConfig: {service: {name: hook, namespace: install}}}}}}
---
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: cert}, spec: {secretName: made, commonName: hook.install, dnsNames: [hook.install.svc, hook.other.svc, example.org], issuerRef: {name: issuer}}}
---
{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: issuer}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {volumes: [{name: v, secret: {secretName: made}}]}}}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: e, labels: {kubernetes.io/service-name: hook}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rules: [{apiGroups: [""], resources: [pods], resourceNames: [hook]}, {apiGroups: [""], resources: [services/status], resourceNames: [hook]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: u}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: hook}]}
---
{apiVersion: example.org/v1, kind: Web, metadata: {name: w}, spec: {service: hook}}
`
	b := bundle()
	b.Companions = []manifest.ID{{Namespace: "install", Name: "made"}}
	b.Companions[0].Kind = "Secret"
	result, problems := overlay.Apply(read(t, text), b, prefixed("p-"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var objects strings.Builder
	for _, m := range result.Manifests {
		data, err := yaml.Marshal(m.Object.Object)
		if err != nil {
			t.Fatal(err)
		}
		objects.Write(data)
	}
	for _, want := range []string{
		"inject-ca-from: install/p-cert", "name: webs.example.org", "name: p-hook\n          namespace: install", "commonName: p-hook.install\n", "- p-hook.install.svc\n", "- hook.other.svc\n", "- example.org\n",
		"name: p-issuer\n", "secretName: p-made\n", "kubernetes.io/service-name: p-hook", "resourceNames:\n  - hook\n  resources:\n  - pods", "resourceNames:\n  - p-hook\n  resources:\n  - services/status", "service: hook\n", "kind: User\n  name: hook\n",
	} {
		if !strings.Contains(objects.String(), want) {
			t.Errorf("no %q in\n%s", want, objects.String())
		}
	}
	if got := result.Name(b.Companions[0].GroupKind, "install", "made"); got != "p-made" {
		t.Errorf("the Secret is called %s", got)
	}
}

// TestNamesThatCannotBe: what is said of them.
func TestNamesThatCannotBe(t *testing.T) {
	long := strings.Repeat("n", 60)
	if _, _, problems := outcome(t, "{apiVersion: v1, kind: Service, metadata: {name: "+long+"}}", prefixed("four")); !strings.Contains(problems, "its name has 64 characters, and 63 at most are allowed; shorten it") {
		t.Error(problems)
	}
	if _, warnings, problems := outcome(t, "{apiVersion: v1, kind: Namespace, metadata: {name: x}}", prefixed("four")); problems != "" || len(warnings) != 1 || !strings.HasPrefix(warnings[0], "spec.processors[0].names changes no name") {
		t.Error(problems, warnings)
	}
	rename := list(overlay.Processor{Patch: &overlay.Patch{Text: "[{op: replace, path: /metadata/name, value: yy}]", Target: target(overlay.Selector{Name: "b"})}}, overlay.Processor{Names: &overlay.Names{Prefix: "a"}})
	if _, _, problems := outcome(t, "{apiVersion: v1, kind: Secret, metadata: {name: yy}}\n---\n{apiVersion: v1, kind: Secret, metadata: {name: b}}", rename); !strings.Contains(problems, "two objects of the bundle are the same one: Secret yy and Secret b") {
		t.Error(problems)
	}
	followed, _, problems := outcome(t, "{apiVersion: v1, kind: Secret, metadata: {name: b}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {imagePullSecrets: [{name: b}]}}", rename)
	if problems != "" || !strings.Contains(followed, "imagePullSecrets:\n  - name: ayy\n") {
		t.Errorf("%s\n%s", problems, followed)
	}
}

// TestNamesInEveryBuiltInReference changes the names that kustomize leaves (cases of its issues 1727 and 5674), and leaves those of
// other objects.
func TestNamesInEveryBuiltInReference(t *testing.T) {
	const objects = `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}
---
{apiVersion: v1, kind: Secret, metadata: {name: x}}
---
{apiVersion: v1, kind: Service, metadata: {name: x}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}}
---
{apiVersion: v1, kind: Pod, metadata: {name: x}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: x}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: x}}
---
{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: x}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: x}}
---
{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, metadata: {name: x}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: x}, spec: {paramKind: {apiVersion: v1, kind: ConfigMap}}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: custom}, spec: {paramKind: {apiVersion: example.org/v1, kind: Limit}}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: x}, spec: {paramKind: {apiVersion: v1, kind: Secret}}}
---
`
	cases := map[string]struct{ reason, object, want string }{
		"policy's parameters":  {"flux-f23: with Deny, every request was denied", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: x, paramRef: {name: x, namespace: install}}}", "p-x,p-x"},
		"of any namespace":     {"without a namespace it is that of the request", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: x, paramRef: {name: x}}}", "p-x,p-x"},
		"elsewhere":            {"the bundle has no such object", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: x, paramRef: {name: x, namespace: other}}}", "x,p-x"},
		"of another kind":      {"no Limit is called x", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: custom, paramRef: {name: x}}}", "x,p-custom"},
		"mutating":             {"", "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: x, paramRef: {name: x}}}", "p-x,p-x"},
		"rules of policies":    {"they name their resources", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: b}, spec: {matchConstraints: {resourceRules: [{apiGroups: [\"\"], resources: [configmaps], resourceNames: [x]}, {apiGroups: [\"\"], resources: [nodes], resourceNames: [x]}]}}}", "p-x,x"},
		"described object":     {"", "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: b}, spec: {metrics: [{object: {describedObject: {apiVersion: v1, kind: Service, name: x}, metric: {name: x}}}]}}", "p-x,x"},
		"priority level":       {"", "{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: b}, spec: {priorityLevelConfiguration: {name: x}, rules: [{subjects: [{serviceAccount: {name: x, namespace: install}}, {user: {name: x}}]}]}}", "p-x,p-x,x"},
		"device class":         {"", "{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: b}, spec: {spec: {devices: {requests: [{name: x, exactly: {deviceClassName: x}}, {name: x, firstAvailable: [{name: x, deviceClassName: x}]}]}}}}", "p-x,x,p-x,x,x"},
		"device class, claim":  {"", "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: b}, spec: {devices: {requests: [{name: x, exactly: {deviceClassName: x}}]}}}", "p-x,x"},
		"claim":                {"", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: b}, spec: {volumeName: x, storageClassName: x, volumeAttributesClassName: x, dataSource: {kind: PersistentVolumeClaim, name: x}, dataSourceRef: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: x}}}", "p-x,x,p-x,p-x,p-x"},
		"template of claims":   {"", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: b}, spec: {volumeClaimTemplates: [{metadata: {name: x}, spec: {storageClassName: x, volumeAttributesClassName: x, dataSourceRef: {kind: PersistentVolumeClaim, name: x}}}]}}", "x,p-x,p-x,p-x"},
		"volume":               {"", "{apiVersion: v1, kind: PersistentVolume, metadata: {name: b}, spec: {claimRef: {name: x, namespace: install}, csi: {volumeHandle: x, nodeStageSecretRef: {name: x, namespace: install}}, storageClassName: x}}", "p-x,p-x,x,p-x"},
		"secrets of CSI":       {"", "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: b}, parameters: {csi.storage.k8s.io/provisioner-secret-name: x, csi.storage.k8s.io/fstype: x}}", "x,p-x"},
		"ephemeral volume":     {"", "{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {volumes: [{name: x, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: x}}}}, {name: x, cephfs: {secretRef: {name: x}}}]}}", "p-x,x,p-x,x"},
		"resource backend":     {"", "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: b}, spec: {defaultBackend: {resource: {apiGroup: \"\", kind: ConfigMap, name: x}}}}", "p-x"},
		"addresses":            {"", "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: b}, endpoints: [{nodeName: x, targetRef: {kind: Pod, name: x, namespace: install}}]}", "x,p-x"},
		"external name":        {"a host of the bundle", "{apiVersion: v1, kind: Service, metadata: {name: b}, spec: {externalName: x.install.svc.cluster.local}}", "p-x.install.svc.cluster.local"},
		"another external one": {"a host elsewhere", "{apiVersion: v1, kind: Service, metadata: {name: b}, spec: {externalName: x.example.org}}", "x.example.org"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result, problems := overlay.Apply(read(t, objects+tc.object), bundle(), prefixed("p-"))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			last := result.Manifests[len(result.Manifests)-1].Object.Object
			delete(last, "metadata")
			if got := strings.Join(namesIn(last), ","); got != tc.want {
				t.Errorf("names are %s, want %s: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// namesIn are the strings of an object that contain an x or are called custom, without those of kinds, in the order of their keys.
func namesIn(value any) []string {
	var all []string
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "kind" && key != "apiVersion" {
				all = append(all, namesIn(v[key])...)
			}
		}
	case []any:
		for _, item := range v {
			all = append(all, namesIn(item)...)
		}
	case string:
		if v == "x" || strings.HasPrefix(v, "p-") || strings.HasPrefix(v, "x.") {
			all = append(all, v)
		}
	}
	return all
}

// TestNamesThatAreNotFollowed: a field of a custom resource that seems to name a renamed object is a warning that names both.
func TestNamesThatAreNotFollowed(t *testing.T) {
	const objects = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}}
---
{apiVersion: example.org/v1, kind: Limit, metadata: {name: web}}
---
`
	cases := map[string]struct{ reason, object, want string }{
		"a list of references": {"HTTPRoute", "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {rules: [{backendRefs: [{name: web, port: 80}]}]}}", `HTTPRoute p-r: spec.rules[0].backendRefs[0].name is "web", and the ConfigMap of this name is called p-web now.`},
		"with a kind":          {"it says which one", "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {rules: [{backendRefs: [{kind: Service, name: web}]}]}}", "the Service of this name"},
		"a kind in the key":    {"configMapName", "{apiVersion: example.org/v1, kind: Web, metadata: {name: r}, spec: {configMapName: web}}", "spec.configMapName is"},
		"a plain key":          {"service", "{apiVersion: example.org/v1, kind: Web, metadata: {name: r}, spec: {service: web}}", "the Service of this name"},
		"a list of names":      {"", "{apiVersion: example.org/v1, kind: Web, metadata: {name: r}, spec: {configMaps: [a, web]}}", "spec.configMaps[1] is"},
		"a custom kind":        {"of the bundle", "{apiVersion: example.org/v1, kind: Web, metadata: {name: r}, spec: {limitRef: {name: web}}}", "p-web now"},
		"unknown parameters":   {"the policy is not in the bundle", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: r}, spec: {policyName: foreign, paramRef: {name: web}}}", "spec.paramRef.name is"},
		"another name":         {"", "{apiVersion: example.org/v1, kind: Web, metadata: {name: r}, spec: {service: other}}", ""},
		"its own name":         {"items have names", "{apiVersion: example.org/v1, kind: Web, metadata: {name: r}, spec: {containers: [{name: web}], title: web}}", ""},
		"another kind":         {"", "{apiVersion: example.org/v1, kind: Web, metadata: {name: r}, spec: {ref: {kind: Pod, name: web}}}", ""},
		"another namespace":    {"", "{apiVersion: example.org/v1, kind: Web, metadata: {name: r}, spec: {ref: {kind: Service, name: web, namespace: other}}}", ""},
		"a built-in kind":      {"is in the tables", "{apiVersion: v1, kind: Pod, metadata: {name: r}, spec: {containers: [{name: web, env: [{name: A, value: web}]}]}}", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, warnings, problems := outcome(t, objects+tc.object, prefixed("p-"))
			if problems != "" {
				t.Fatal(problems)
			}
			if got := strings.Join(warnings, "\n"); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("warnings %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
	many := objects + "{apiVersion: example.org/v1, kind: Web, metadata: {name: r}, spec: {configMaps: [" + strings.Repeat("web, ", 500) + "web]}}"
	if _, warnings, _ := outcome(t, many, prefixed("p-")); len(warnings) != 20 {
		t.Errorf("%d warnings about 501 fields", len(warnings))
	}
}
