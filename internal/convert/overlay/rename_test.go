// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
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
	ours, _, problems := outcome(t, network, overlay.Options{NamePrefix: "p-", NameSuffix: "-s"})
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
	result, problems := overlay.Apply(read(t, text), b, overlay.Options{NamePrefix: "p-"})
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
	if _, _, problems := outcome(t, "{apiVersion: v1, kind: Service, metadata: {name: "+long+"}}", overlay.Options{NamePrefix: "four"}); !strings.Contains(problems, "its name has 64 characters, and 63 at most are allowed; shorten them") {
		t.Error(problems)
	}
	if _, warnings, problems := outcome(t, "{apiVersion: v1, kind: Namespace, metadata: {name: x}}", overlay.Options{NamePrefix: "four"}); problems != "" || len(warnings) != 1 || !strings.HasPrefix(warnings[0], "spec.namePrefix and spec.nameSuffix change no name") {
		t.Error(problems, warnings)
	}
	rename := overlay.Options{NamePrefix: "a", Patches: []overlay.Patch{{Text: "[{op: replace, path: /metadata/name, value: yy}]", Target: target(overlay.Selector{Name: "b"})}}}
	if _, _, problems := outcome(t, "{apiVersion: v1, kind: Secret, metadata: {name: yy}}\n---\n{apiVersion: v1, kind: Secret, metadata: {name: b}}", rename); !strings.Contains(problems, "make two objects of the bundle the same one: Secret yy and Secret b") {
		t.Error(problems)
	}
	followed, _, problems := outcome(t, "{apiVersion: v1, kind: Secret, metadata: {name: b}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {imagePullSecrets: [{name: b}]}}", rename)
	if problems != "" || !strings.Contains(followed, "imagePullSecrets:\n  - name: ayy\n") {
		t.Errorf("%s\n%s", problems, followed)
	}
}
