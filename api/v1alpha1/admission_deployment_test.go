// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	aSourceRef  = "sourceRef: {kind: BundleSource, name: a}"
	anAccount   = "serviceAccountName: installer"
	aDeployment = aSourceRef + "\n" + anAccount
)

// TestBundleDeploymentAdmission writes what users write, rightly and wrongly.
func TestBundleDeploymentAdmission(t *testing.T) {
	checkAdmission(t, "BundleDeployment", map[string]admitted{
		"reference":     {reason: "a source that others use too", spec: aDeployment},
		"inline source": {reason: "the shortest form", spec: "source: {" + anImage + "}\n" + anAccount},
		"all fields": {reason: "nothing contradicts", spec: aDeployment + `
path: a/b
format: registry+v1
target:
  namespace: b
  createNamespace: true
  kubeConfig: {secretRef: {name: prod, key: config}}
  serviceAccountName: installer
interval: 1m
retryInterval: 5s
health:
  timeout: 90s
suspend: true
registryV1:
  watchNamespaces: [b, c]
  certificateProvider: cert-manager
  requirements: Warn
  operatorConditions: true
  apiClusterRoles: true
  podAnnotations: Required
  includeCustomResources: true
  deploymentConfig:
    env: [{name: A, value: b}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    envFrom: [{configMapRef: {name: a}}]
    volumes: [{name: a, emptyDir: {}}]
    volumeMounts: [{name: a, mountPath: /a}]
    tolerations: [{operator: Exists}]
    resources: {limits: {cpu: 1}}
    nodeSelector: {a: b}
    affinity: {nodeAffinity: {}}
    annotations: {a: b}
apply:
  crds: {upgradeSafety: Warn, upgradeSafetyExemptions: [widgets.example.com]}
prune: {enabled: false}
remediation: {strategy: Rollback, retries: 3}
historyLimit: 10`},
		"kubeconfig":             {reason: "the key may be left out", spec: inTarget("kubeConfig: {secretRef: {name: prod}}")},
		"kubeconfig of nothing":  {reason: "which Secret?", spec: inTarget("kubeConfig: {}"), want: "spec.target.kubeConfig.secretRef: Required value"},
		"kubeconfig elsewhere":   {reason: "no reference names a namespace", spec: inTarget("kubeConfig: {secretRef: {name: prod, namespace: b}}"), want: `BundleDeployment in version "v1alpha1" cannot be handled as a BundleDeployment: strict decoding error: unknown field "spec.target.kubeConfig.secretRef.namespace"`},
		"kubeconfig in a path":   {reason: "a bare name", spec: inTarget("kubeConfig: {secretRef: {name: ../b/prod}}"), want: `spec.target.kubeConfig.secretRef.name: Invalid value: "../b/prod": must be the bare name of an object in this namespace: lower-case letters, digits, '-' and '.'`},
		"kubeconfig of a cloud":  {reason: "the controller logs in nowhere as itself", spec: inTarget("kubeConfig: {configMapRef: {name: prod}}"), want: `BundleDeployment in version "v1alpha1" cannot be handled as a BundleDeployment: strict decoding error: unknown field "spec.target.kubeConfig.configMapRef"`},
		"remote account at home": {reason: "it would be ignored", spec: inTarget("serviceAccountName: a"), want: "spec.target: Invalid value: serviceAccountName needs kubeConfig or clusterProfileRef: it is a ServiceAccount of the remote cluster"},
		"remote account":         {reason: "of a ClusterProfile", spec: inTarget("clusterProfileRef: {name: prod, accessProvider: p}, serviceAccountName: a")},
		"empty remote account":   {reason: "an empty name would not impersonate", spec: inTarget(`kubeConfig: {secretRef: {name: prod}}, serviceAccountName: ""`), want: `spec.target.serviceAccountName: Invalid value: "": spec.target.serviceAccountName in body should be at least 1 chars long`},
		"two clusters":           {reason: "which one?", spec: inTarget("kubeConfig: {secretRef: {name: prod}}, clusterProfileRef: {name: prod}"), want: "spec.target: Invalid value: at most one of the fields in [kubeConfig clusterProfileRef] may be set"},
		"profile of nothing":     {reason: "which ClusterProfile?", spec: inTarget("clusterProfileRef: {}"), want: "spec.target.clusterProfileRef.name: Required value"},
		"profile elsewhere":      {reason: "no reference names a namespace", spec: inTarget("clusterProfileRef: {name: prod, namespace: b}"), want: `BundleDeployment in version "v1alpha1" cannot be handled as a BundleDeployment: strict decoding error: unknown field "spec.target.clusterProfileRef.namespace"`},
		"remote account of all":  {reason: "a ServiceAccount, and no group", spec: inTarget("kubeConfig: {secretRef: {name: prod}}, serviceAccountName: \"system:masters\""), want: `spec.target.serviceAccountName: Invalid value: "system:masters": must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'`},
		"strategy":               {reason: "only what is written", spec: aDeployment + "\nremediation: {strategy: Uninstall}", want: `spec.remediation.strategy: Unsupported value: "Uninstall": supported values: "None", "Rollback"`},
		"no retries":             {reason: "fewer than none", spec: aDeployment + "\nremediation: {retries: -1}", want: "spec.remediation.retries: Invalid value: -1: spec.remediation.retries in body should be greater than or equal to 0"},
		"no history":             {reason: "what is tried is part of it", spec: aDeployment + "\nhistoryLimit: 0", want: "spec.historyLimit: Invalid value: 0: spec.historyLimit in body should be greater than or equal to 1"},
		"long history":           {reason: "statuses end somewhere", spec: aDeployment + "\nhistoryLimit: 51", want: "spec.historyLimit: Invalid value: 51: spec.historyLimit in body should be less than or equal to 50"},
		"name too long":          {reason: "a label value has at most 63 characters", name: strings.Repeat("a", 64), spec: aDeployment, want: "<nil>: Invalid value: the name must have at most 63 characters"},
		"no spec":                {reason: "a deployment of nothing", want: "spec: Required value"},
		"no source":              {reason: "a deployment of nothing", spec: anAccount, want: "spec: Invalid value: exactly one of the fields in [source sourceRef catalog] must be set"},
		"two sources":            {reason: "which one?", spec: aDeployment + "\nsource: {" + anImage + "}", want: "spec: Invalid value: exactly one of the fields in [source sourceRef catalog] must be set"},
		"bad inline source":      {reason: "the rules of sources hold here too", spec: "source: {sources: []}\n" + anAccount, want: "spec.source.sources: Invalid value: 0: spec.source.sources in body should have at least 1 items"},
		"kind of source":         {reason: "only known ones", spec: "sourceRef: {kind: HelmChart, name: a}\n" + anAccount, want: `spec.sourceRef.kind: Unsupported value: "HelmChart": supported values: "BundleSource", "GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"`},
		"kind of Flux":           {reason: "the group is not ours", spec: "sourceRef: {kind: GitRepository, name: a}\n" + anAccount, want: `spec.sourceRef: Invalid value: a BundleSource has apiVersion satchel.dev/v1alpha1, and GitRepository, OCIRepository, Bucket and ExternalArtifact have source.toolkit.fluxcd.io/v1`},
		"source of Flux":         {reason: "kind and group fit", spec: "sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: Bucket, name: a}\n" + anAccount},
		"group of source":        {reason: "only known ones", spec: "sourceRef: {apiVersion: v1, kind: BundleSource, name: a}\n" + anAccount, want: `spec.sourceRef.apiVersion: Unsupported value: "v1": supported values: "satchel.dev/v1alpha1", "source.toolkit.fluxcd.io/v1"`},
		"namespace of source":    {reason: "no reference names a namespace", spec: "sourceRef: {kind: BundleSource, name: a, namespace: b}\n" + anAccount, want: `BundleDeployment in version "v1alpha1" cannot be handled as a BundleDeployment: strict decoding error: unknown field "spec.sourceRef.namespace"`},
		"nameless source":        {reason: "which source?", spec: "sourceRef: {kind: BundleSource}\n" + anAccount, want: "spec.sourceRef.name: Required value"},
		"unknown field":          {reason: "a typing error is told, as kubectl tells it", spec: aDeployment + "\nserviceAccount: a", want: `BundleDeployment in version "v1alpha1" cannot be handled as a BundleDeployment: strict decoding error: unknown field "spec.serviceAccount"`},
		"absolute path":          {reason: "relative to the artifact", spec: aDeployment + "\npath: /a", want: `spec.path: Invalid value: "/a": must be a relative path without ..`},
		"path above":             {reason: "nothing leaves the artifact", spec: aDeployment + "\npath: a/../../b", want: `spec.path: Invalid value: "a/../../b": must be a relative path without ..`},
		"path with dots":         {reason: "two dots in a name lead nowhere", spec: aDeployment + "\npath: a..b/c"},
		"long path":              {reason: "paths end somewhere", spec: aDeployment + "\npath: " + strings.Repeat("a", 1025), want: "spec.path: Too long: may not be more than 1024 bytes"},
		"unknown format":         {reason: "only what is written", spec: aDeployment + "\nformat: jsonnet", want: `spec.format: Unsupported value: "jsonnet": supported values: "plain+v0", "registry+v1", "helm", "kustomize"`},
		"options of a format":    {reason: "registryV1 alone implies nothing about the format", spec: aDeployment + "\nregistryV1: {}"},
		"options of another format": {
			reason: "they would be ignored", spec: aDeployment + "\nformat: plain+v0\nregistryV1: {}", want: "spec: Invalid value: registryV1 needs format registry+v1",
		},
		"watched twice":         {reason: "a set", spec: aDeployment + "\nregistryV1: {watchNamespaces: [a, a]}", want: `spec.registryV1.watchNamespaces[1]: Duplicate value: "a"`},
		"watched nowhere":       {reason: "an empty name is a mistake, not all namespaces", spec: aDeployment + "\nregistryV1: {watchNamespaces: [\"\"]}", want: `spec.registryV1.watchNamespaces[0]: Invalid value: "": must be the name of a namespace: lower-case letters, digits and '-'`},
		"watched too many":      {reason: "watch all namespaces then", spec: aDeployment + "\nregistryV1: {watchNamespaces: [" + numbered(101) + "]}", want: "spec.registryV1.watchNamespaces: Too many: 101: must have at most 100 items"},
		"certificate provider":  {reason: "only what is written", spec: aDeployment + "\nregistryV1: {certificateProvider: vault}", want: `spec.registryV1.certificateProvider: Unsupported value: "vault": supported values: "self-signed", "cert-manager", "service-ca"`},
		"requirements":          {reason: "only what is written", spec: aDeployment + "\nregistryV1: {requirements: Maybe}", want: `spec.registryV1.requirements: Unsupported value: "Maybe": supported values: "Enforce", "Warn", "None"`},
		"pod annotations":       {reason: "only what is written", spec: aDeployment + "\nregistryV1: {podAnnotations: None}", want: `spec.registryV1.podAnnotations: Unsupported value: "None": supported values: "All", "Required"`},
		"upgrade safety":        {reason: "only what is written", spec: aDeployment + "\napply: {crds: {upgradeSafety: Never}}", want: `spec.apply.crds.upgradeSafety: Unsupported value: "Never": supported values: "Enforce", "Warn", "None"`},
		"exempted twice":        {reason: "a set", spec: aDeployment + "\napply: {crds: {upgradeSafetyExemptions: [a.b, a.b]}}", want: `spec.apply.crds.upgradeSafetyExemptions[1]: Duplicate value: "a.b"`},
		"config of no fields":   {reason: "a mapping, checked when the bundle is converted", spec: aDeployment + "\nregistryV1: {deploymentConfig: [a]}", want: `spec.registryV1.deploymentConfig: Invalid value: "array": spec.registryV1.deploymentConfig in body must be of type object: "array"`},
		"namespace in capitals": {reason: "no namespace has such a name", spec: inTarget("namespace: Prod"), want: `spec.target.namespace: Invalid value: "Prod": must be the name of a namespace: lower-case letters, digits and '-'`},
		"long namespace":        {reason: "no namespace has such a name", spec: inTarget("namespace: " + strings.Repeat("a", 64)), want: "spec.target.namespace: Too long: may not be more than 63 bytes"},
	})
}

// inTarget is a deployment with fields of its target.
func inTarget(fields string) string { return aDeployment + "\ntarget: {" + fields + "}" }

func numbered(n int) string {
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, "n"+strconv.Itoa(i))
	}
	return strings.Join(names, ", ")
}

// TestT1AccountRequired leaves the account out in every way.
func TestT1AccountRequired(t *testing.T) {
	checkAdmission(t, "BundleDeployment", map[string]admitted{
		"absent": {reason: "there is no default account", spec: aSourceRef, want: "spec.serviceAccountName: Required value"},
		"null":   {reason: "the same in other words", spec: aSourceRef + "\nserviceAccountName: null", want: "spec.serviceAccountName: Required value"},
		"empty":  {reason: "an empty name would not impersonate", spec: aSourceRef + "\nserviceAccountName: \"\"", want: `spec.serviceAccountName: Invalid value: "": spec.serviceAccountName in body should be at least 1 chars long`},
		"blank":  {reason: "a blank is not a name", spec: aSourceRef + "\nserviceAccountName: \" \"", want: `spec.serviceAccountName: Invalid value: " ": must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'`},
	})
}

// TestT2AccountNames writes accounts of others.
func TestT2AccountNames(t *testing.T) {
	account := func(name string) string { return aSourceRef + "\nserviceAccountName: \"" + name + "\"" }
	checkAdmission(t, "BundleDeployment", map[string]admitted{
		"dots":             {reason: "account names are DNS subdomains", spec: account("a.b-c.d")},
		"longest":          {reason: "up to 253 characters", spec: account(strings.Repeat("a", 253))},
		"two parts":        {reason: "would name another namespace's account", spec: account("x:y"), want: `spec.serviceAccountName: Invalid value: "x:y": must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'`},
		"path":             {reason: "would leave the namespace in a URL", spec: account("../b"), want: `spec.serviceAccountName: Invalid value: "../b": must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'`},
		"slash":            {reason: "would name another namespace's account", spec: account("b/deployer"), want: `spec.serviceAccountName: Invalid value: "b/deployer": must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'`},
		"group":            {reason: "would be a group", spec: account("system:masters"), want: `spec.serviceAccountName: Invalid value: "system:masters": must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'`},
		"line":             {reason: "would end a header", spec: account(`a\nb`), want: "spec.serviceAccountName: Invalid value: \"a\\nb\": must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'"},
		"too long":         {reason: "no account has such a name", spec: account(strings.Repeat("a", 300)), want: "spec.serviceAccountName: Too long: may not be more than 253 bytes"},
		"capitals":         {reason: "no account has such a name", spec: account("Installer"), want: `spec.serviceAccountName: Invalid value: "Installer": must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'`},
		"trailing newline": {reason: "a pattern's end must be the end", spec: account(`a\n`), want: "spec.serviceAccountName: Invalid value: \"a\\n\": must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'"},
	})
}

// TestTargetNamespaceIsFixed edits the namespace of a deployment.
func TestTargetNamespaceIsFixed(t *testing.T) {
	const refused = "spec.target: Invalid value: namespace cannot change; create another BundleDeployment instead"
	checkChanges(t, "BundleDeployment", map[string]change{
		"unchanged":      {reason: "other fields may change", from: inTarget("namespace: b"), to: inTarget("namespace: b") + "\nsuspend: true"},
		"still default":  {reason: "other fields may change", from: aDeployment, to: aDeployment + "\nsuspend: true"},
		"empty target":   {reason: "the same namespace", from: aDeployment, to: inTarget("")},
		"other cluster":  {reason: "the inventory says what is where", from: inTarget("namespace: b"), to: inTarget("namespace: b, kubeConfig: {secretRef: {name: prod}}")},
		"changed":        {reason: "the objects would have to move", from: inTarget("namespace: b"), to: inTarget("namespace: c"), want: refused},
		"set":            {reason: "the objects would have to move", from: aDeployment, to: inTarget("namespace: c"), want: refused},
		"set in target":  {reason: "the objects would have to move", from: inTarget("createNamespace: true"), to: inTarget("namespace: c"), want: refused},
		"left out":       {reason: "the objects would have to move", from: inTarget("namespace: b"), to: aDeployment, want: refused},
		"target is null": {reason: "the objects would have to move", from: inTarget("namespace: b"), to: aDeployment + "\ntarget: null", want: refused},
		"emptied":        {reason: "the objects would have to move", from: inTarget("namespace: b"), to: inTarget(""), want: refused},
		"other source":   {reason: "a deployment may change its source", from: aDeployment, to: "source: {" + anImage + "}\n" + anAccount},
	})
}

// TestDefaults reads what the API server fills in.
func TestDefaults(t *testing.T) {
	a := newAdmission(t)
	created, err := a.create(object(t, "BundleDeployment", "x", "source: {"+anImage+"}\n"+anAccount+"\nregistryV1: {}\napply: {crds: {}}"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]any{
		"spec.registryV1.certificateProvider": "self-signed",
		"spec.registryV1.requirements":        "Enforce",
		"spec.registryV1.podAnnotations":      "All",
		"spec.apply.crds.upgradeSafety":       "Enforce",

		"status.observedGeneration": int64(-1),
		"spec.interval":             "10m",
		"spec.retryInterval":        "1m",
		"spec.health.timeout":       "5m",
		"spec.prune.enabled":        true,
		"spec.apply.recreate":       "None",
		"spec.deletionPolicy":       "Delete",

		"spec.apply.collisionProtection": "Prevent",

		"spec.source.interval": "10m",
		"spec.source.timeout":  "60s",
	} {
		got, _, err := unstructured.NestedFieldNoCopy(created.Object, strings.Split(path, ".")...)
		if err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", path, got, err, want)
		}
	}
}
