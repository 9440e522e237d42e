// SPDX-License-Identifier: Apache-2.0

package escalation_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/plan/escalation"
)

// objects reads YAML documents.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

const (
	plain   = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: web, image: a}]}}}"
	hook    = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: w, labels: {v: \"1\"}}\nwebhooks: [{name: a.example.org}]"
	labels  = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {satchel.dev/deployment: web, app: shop}}"
	account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: own}"
)

// with replaces a part of a manifest.
func with(text, old, now string) string { return strings.Replace(text, old, now, 1) }

// pod is the Deployment with an addition to its Pods, and container to its container.
func pod(more string) string {
	return with(plain, "{spec: {containers", "{spec: {"+more+", containers")
}

func container(more string) string { return with(plain, "image: a", "image: a, "+more) }

func TestT25WhatReachesFurther(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		before, after string
		want          []string // parts of the findings, in order; none where nothing is found
	}{
		"nothing":                {"the same", plain, plain, nil},
		"new workload":           {"an ordinary one", with(plain, "name: web}", "name: other}"), plain, nil},
		"first workload":         {"the account may have permissions", "", plain, []string{"runs as the ServiceAccount default, which the applied revision neither contains nor uses"}},
		"new image":              {"content may change", plain, with(plain, "image: a", "image: b"), nil},
		"new webhook":            {"it decides what is admitted", "", hook, []string{"ValidatingWebhookConfiguration.admissionregistration.k8s.io w is new"}},
		"changed webhook":        {"it decides otherwise", hook, with(hook, "a.example", "b.example"), []string{"w changes"}},
		"label of a webhook":     {"metadata decides nothing", hook, with(hook, `v: "1"`, `v: "2"`), nil},
		"policy":                 {"it decides what is admitted", "", with(hook, "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding"), []string{"is new"}},
		"API service":            {"it answers for an API", "", "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.x}", []string{"is new"}},
		"certificate request":    {"it asks for an identity", "", "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: x}", []string{"is new"}},
		"deployment of Satchel":  {"it installs more, as another account", "", "apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: x, namespace: other}", []string{"BundleDeployment.satchel.dev other/x is new"}},
		"namespace":              {"it is cluster-scoped", "", labels, []string{"is new"}},
		"demand":                 {"setting it is an escalation", labels, with(labels, "app: shop", "satchel.dev/approval: required"), []string{"gets the label satchel.dev/approval=required"}},
		"pod security":           {"more Pods are admitted", labels, with(labels, "app: shop", "pod-security.kubernetes.io/enforce: privileged"), []string{"gets the label pod-security"}},
		"pod security changes":   {"other Pods are admitted", with(labels, "app: shop", "pod-security.kubernetes.io/enforce: restricted"), with(labels, "app: shop", "pod-security.kubernetes.io/enforce: baseline"), []string{"from restricted to baseline"}},
		"pod security goes":      {"more Pods are admitted", with(labels, "app: shop", "pod-security.kubernetes.io/enforce: restricted"), labels, []string{"loses the label"}},
		"label of another kind":  {"it is not known", plain, with(plain, "name: web}", "name: web, labels: {pod-security.kubernetes.io/enforce: privileged}}"), []string{"gets the label"}},
		"host network":           {"it hears its node", plain, pod("hostNetwork: true"), []string{"uses hostNetwork"}},
		"host network as before": {"only what is new counts", pod("hostNetwork: true"), with(pod("hostNetwork: true"), "image: a", "image: b"), nil},
		"less":                   {"losing power is no escalation", pod("hostPID: true, hostIPC: true"), pod("hostPID: true"), nil},
		"host path":              {"it reads its node", plain, pod("volumes: [{name: v, hostPath: {path: /}}]"), []string{"mounts / of the node"}},
		"another host path":      {"under the same name", pod("volumes: [{name: v, hostPath: {path: /var/log}}]"), pod("volumes: [{name: v, hostPath: {path: /}}]"), []string{"mounts / of the node"}},
		"empty dir":              {"an ordinary volume", plain, pod("volumes: [{name: v, emptyDir: {}}]"), nil},
		"privileged":             {"it owns its node", plain, container("securityContext: {privileged: true}"), []string{"container web: is privileged"}},
		"capability":             {"it may do more to its node", container("securityContext: {capabilities: {add: [NET_ADMIN]}}"), container("securityContext: {capabilities: {add: [NET_ADMIN, SYS_ADMIN]}}"), []string{"has the capability SYS_ADMIN"}},
		"escalation":             {"programs gain privileges", plain, container("securityContext: {allowPrivilegeEscalation: true}"), []string{"allows privilege escalation"}},
		"escalation not denied":  {"the default is true", container("securityContext: {allowPrivilegeEscalation: false}"), plain, []string{"no longer has container web: allowPrivilegeEscalation: false"}},
		"root":                   {"root of the container", plain, container("securityContext: {runAsUser: 0}"), []string{"runs as root"}},
		"root not denied":        {"the image decides", container("securityContext: {runAsNonRoot: true}"), plain, []string{"no longer has container web: runAsNonRoot"}},
		"bounded container goes": {"what is gone needs no bounds", container("securityContext: {runAsNonRoot: true}"), with(plain, "name: web, image", "name: other, image"), nil},
		"host port":              {"it answers for its node", plain, container("ports: [{hostPort: 80}]"), []string{"uses port 80 of the node"}},
		"seccomp":                {"it may call anything", plain, container("securityContext: {seccompProfile: {type: Unconfined}}"), []string{"has no seccompProfile"}},
		"proc":                   {"it sees the kernel", plain, container("securityContext: {procMount: Unmasked}"), []string{"sees all of /proc"}},
		"init container":         {"it is one, too", plain, pod("initContainers: [{name: i, securityContext: {privileged: true}}]"), []string{"container i: is privileged"}},
		"cron job":               {"deeper", plain, "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec: {jobTemplate: {spec: {template: {spec: {hostNetwork: true, containers: [{name: c}]}}}}}", []string{"CronJob.batch /c uses hostNetwork"}},
		"custom resource":        {"of another operator", "", "apiVersion: example.org/v1\nkind: Rollout\nmetadata: {name: c}\nspec: {pods: [{hostPID: true, containers: [{name: c}]}]}", []string{"is new"}},
		"another account":        {"it may do other things", plain, pod("serviceAccountName: admin"), []string{"runs as the ServiceAccount admin, not default any more"}},
		"account of others":      {"its permissions were not approved", "", pod("serviceAccountName: admin"), []string{"runs as the ServiceAccount admin, which the applied revision neither contains nor uses"}},
		"own account":            {"its permissions count by themselves", account, pod("serviceAccountName: own") + "\n---\n" + account, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, finding := range escalation.Of(objects(t, tc.before), objects(t, tc.after), "shop") {
				got = append(got, strings.ReplaceAll(finding.String(), " shop/", " /"))
			}
			if len(got) != len(tc.want) || slices.ContainsFunc(tc.want, func(want string) bool {
				return !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, want) })
			}) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// A malformed Pod, at any path, is skipped.
func TestT25MalformedPodsArePassedOver(t *testing.T) {
	for _, text := range []string{
		pod("volumes: x"), pod("securityContext: [1]"), container("securityContext: 5"), container("ports: [x]"),
		with(plain, "[{name: web, image: a}]", "[x, 5, {name: 5}]"), "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: 5",
	} {
		escalation.Of(objects(t, plain), objects(t, text), "shop")
		escalation.Of(objects(t, text), objects(t, plain), "shop")
	}
}
